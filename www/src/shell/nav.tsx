/** Navigation between the views: a rail at the side where there is room, a drawer on phones. */
import type { ComponentChildren, JSX } from 'preact';
import { LANG_INFO, LANGS, lang, setLang } from '../i18n';
import { t } from '../i18n/core';
import { useSession } from '../ui/context';
import { Choices, Dialog, Icon, IconButton, Mark } from '../ui/kit';
import { hrefTo, VIEWS, type ViewName, view } from './router';
import { SCHEMES, scheme, setScheme } from './scheme';
import { VIEW_INFO } from './views';

/** The rail: an icon with a short name for each view. */
export function Rail(): JSX.Element {
  const session = useSession();
  return (
    <nav class="rail" aria-label={t('views')}>
      <a class="rail-mark" href={hrefTo('chat')} aria-label={t('appName')}>
        <Mark />
      </a>
      <ul>
        {VIEWS.map((name) => (
          <li key={name}>
            <ViewLink name={name} text={VIEW_INFO[name].short()} />
          </li>
        ))}
      </ul>
      <div class="rail-end">
        <IconButton
          icon="shield"
          label={t('privacy')}
          opens="dialog"
          onClick={() => {
            session.dialog.value = 'privacy';
          }}
        />
        <IconButton
          icon="settings"
          label={t('settings')}
          opens="dialog"
          onClick={() => {
            session.dialog.value = 'settings';
          }}
        />
      </div>
    </nav>
  );
}

function ViewLink({ name, text, onClick }: { name: ViewName; text: string; onClick?: () => void }): JSX.Element {
  const { icon, title } = VIEW_INFO[name];
  return (
    <a
      class="view-link"
      href={hrefTo(name)}
      title={title()}
      aria-current={view.value === name ? 'page' : undefined}
      onClick={onClick}
    >
      <Icon name={icon} />
      <span>{text}</span>
    </a>
  );
}

/** The same on a phone, with what the view itself has to offer above. */
export function Drawer({ onClose, children }: { onClose: () => void; children?: ComponentChildren }): JSX.Element {
  const session = useSession();
  const open = (dialog: 'settings' | 'privacy'): void => {
    onClose();
    session.dialog.value = dialog;
  };
  return (
    <Dialog title={t('appName')} shape="drawer" onClose={onClose}>
      <nav aria-label={t('views')}>
        <ul class="drawer-views">
          {VIEWS.map((name) => (
            <li key={name}>
              <ViewLink name={name} text={VIEW_INFO[name].title()} onClick={onClose} />
            </li>
          ))}
        </ul>
      </nav>
      {children}
      <div class="drawer-end">
        <button type="button" class="view-link" onClick={() => open('settings')}>
          <Icon name="settings" />
          <span>{t('settings')}</span>
        </button>
        <button type="button" class="view-link" onClick={() => open('privacy')}>
          <Icon name="shield" />
          <span>{t('privacy')}</span>
        </button>
      </div>
    </Dialog>
  );
}

/** The page's language and colours. */
export function Appearance(): JSX.Element {
  const schemeNames = { auto: t('schemeAuto'), light: t('schemeLight'), dark: t('schemeDark') };
  return (
    <div class="appearance">
      <Choices
        label={t('language')}
        options={LANGS.map((value) => ({ value, label: LANG_INFO[value].name }))}
        value={lang.value}
        onChange={setLang}
      />
      <Choices
        label={t('scheme')}
        options={SCHEMES.map((value) => ({ value, label: schemeNames[value] }))}
        value={scheme.value}
        onChange={setScheme}
      />
    </div>
  );
}
