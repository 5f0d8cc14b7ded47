/** The views: how each is called, drawn and loaded. Each comes when it is first opened. */
import type { ComponentType } from 'preact';
import { t } from '../i18n/core';
import type { IconName } from '../ui/kit';
import type { ViewName } from './router';

export interface ViewInfo {
  readonly icon: IconName;
  /** Its name in full. */
  readonly title: () => string;
  /** Its name where there is little room. */
  readonly short: () => string;
  /** Its module, whose default export is the component. */
  readonly load: () => Promise<{ default: ComponentType }>;
}

export const VIEW_INFO: Readonly<Record<ViewName, ViewInfo>> = {
  chat: {
    icon: 'chat',
    title: () => t('viewChat'),
    short: () => t('viewChat'),
    load: () => import('../chat/view'),
  },
  'labs/cache': {
    icon: 'cache',
    title: () => t('viewCache'),
    short: () => t('viewCache'),
    load: () => import('../labs/cache/view'),
  },
  'labs/batching': {
    icon: 'batching',
    title: () => t('viewBatching'),
    short: () => t('viewBatching'),
    load: () => import('../labs/batching/view'),
  },
  'labs/floor': {
    icon: 'floor',
    title: () => t('viewFloor'),
    short: () => t('railFloor'),
    load: () => import('../labs/floor/view'),
  },
  'labs/memory': {
    icon: 'memory',
    title: () => t('viewMemory'),
    short: () => t('viewMemory'),
    load: () => import('../labs/memory/view'),
  },
  'labs/doctor': {
    icon: 'doctor',
    title: () => t('viewDoctor'),
    short: () => t('railDoctor'),
    load: () => import('../labs/doctor/view'),
  },
  'labs/documents': {
    icon: 'documents',
    title: () => t('viewDocuments'),
    short: () => t('railDocuments'),
    load: () => import('../labs/documents/view'),
  },
};
