/** What is stored where, how much it is, and a way to erase it all. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { chatOf } from '../chat/context';
import { translator } from '../i18n';
import { t as core } from '../i18n/core';
import { privacy as en } from '../i18n/en/privacy';
import { formatBytes } from '../i18n/format';
import { privacy as zh } from '../i18n/zh/privacy';
import { deleteModel, type ErasePart, eraseAll, reportStorage, type StorageReport } from '../offline/storage';
import { useSession } from './context';
import { Button, Dialog, IconButton } from './kit';
import './privacy-dialog.css';

const t = translator(en, zh);

const PARTS = {
  chats: 'chats',
  documents: 'documents',
  models: 'models',
  page: 'page',
  settings: 'settings',
} as const satisfies Readonly<Record<ErasePart, string>>;

export default function PrivacyDialog(): JSX.Element {
  const session = useSession();
  const [report, setReport] = useState<StorageReport | null>(null);
  const [failed, setFailed] = useState<readonly ErasePart[] | null>(null);
  const measure = (): void => void reportStorage().then(setReport);
  const remove = async (id: string): Promise<void> => {
    await deleteModel(id);
    measure();
    await session.lookForStored();
  };
  useEffect(measure, []);

  const erase = async (): Promise<void> => {
    setFailed(await eraseAll(session, () => chatOf(session).erased()));
  };

  if (failed) return <Erased failed={failed} onClose={() => session.closeDialog()} />;
  return (
    <Dialog title={t('title')} shape="box" onClose={() => session.closeDialog()}>
      <p>{t('lead')}</p>
      <p class="after">{t('network')}</p>
      <h3 class="or">{t('stored')}</h3>
      <Stored report={report} onDelete={(id) => void remove(id)} />
      <p class="help">{t('owner')}</p>
      <EraseButton onErase={() => void erase()} />
    </Dialog>
  );
}

function Stored({ report, onDelete }: { report: StorageReport | null; onDelete: (id: string) => void }): JSX.Element {
  const size = (bytes: number | null | undefined): string => {
    if (!report) return '…';
    return bytes === null || bytes === undefined ? t('unknown') : formatBytes(bytes);
  };
  return (
    <dl class="stored">
      <div>
        <dt>{t('chats')}</dt>
        <dd>{size(report?.chatBytes)}</dd>
        <dd class="place">{t('chatsPlace', { count: report?.numConversations ?? 0 })}</dd>
      </div>
      <div>
        <dt>{t('documents')}</dt>
        <dd>{size(report?.documentBytes)}</dd>
        <dd class="place">{t('documentsPlace', { count: report?.numDocuments ?? 0 })}</dd>
      </div>
      <div>
        <dt>{t('models')}</dt>
        <dd>{size(report?.modelBytes)}</dd>
        <dd class="place">{t('modelsPlace')}</dd>
        {report?.models.map(({ id, name, bytes }) => (
          <dd key={id} class="stored-model">
            <span>{name}</span>
            <span>{formatBytes(bytes)}</span>
            <IconButton icon="trash" label={t('deleteModel', { name })} onClick={() => onDelete(id)} />
          </dd>
        ))}
      </div>
      <div>
        <dt>{t('page')}</dt>
        <dd>{size(report?.pageBytes)}</dd>
        <dd class="place">{t('pagePlace')}</dd>
      </div>
      <div>
        <dt>{t('settings')}</dt>
        <dd>{size(report?.settingsBytes)}</dd>
        <dd class="place">{t('settingsPlace')}</dd>
      </div>
    </dl>
  );
}

/** Asks once more: what is erased does not come back. */
function EraseButton({ onErase }: { onErase: () => void }): JSX.Element {
  const [isSure, setSure] = useState(false);
  if (!isSure) {
    return (
      <div class="actions">
        <Button kind="danger" icon="trash" onClick={() => setSure(true)}>
          {t('erase')}
        </Button>
      </div>
    );
  }
  return (
    <div class="warning" role="alert">
      <p>{t('eraseSure')}</p>
      <div class="actions">
        <Button kind="danger" onClick={onErase}>
          {t('eraseNow')}
        </Button>
        <Button onClick={() => setSure(false)}>{core('cancel')}</Button>
      </div>
    </div>
  );
}

function Erased({ failed, onClose }: { failed: readonly ErasePart[]; onClose: () => void }): JSX.Element {
  return (
    <Dialog title={t('title')} shape="box" onClose={onClose}>
      <div role="alert" class="erased">
        <p>{failed.length === 0 ? t('erasedAll') : t('erasedSome')}</p>
        {failed.length > 0 && (
          <ul>
            {failed.map((part) => (
              <li key={part}>{t(PARTS[part])}</li>
            ))}
          </ul>
        )}
      </div>
      <div class="actions">
        <Button kind="primary" onClick={() => location.assign('./')}>
          {t('begin')}
        </Button>
      </div>
    </Dialog>
  );
}
