/** What an import brought, and what it left out. */
import type { JSX } from 'preact';
import { t as core } from '../i18n/core';
import { Button, Dialog } from '../ui/kit';
import { useChat } from './context';
import { importReport } from './files';
import type { ImportProblemCode } from './import';
import { t } from './text';

const SHOWN = 20;

const TEXTS = {
  not_json: 'importNotJson',
  not_ours: 'importNotOurs',
  other_version: 'importOtherVersion',
  no_marks: 'importNoMarks',
  not_a_conversation: 'importNotConversation',
  no_messages: 'importNoMessages',
  not_a_message: 'importNotMessage',
  lost_parent: 'importLostParent',
  not_a_prompt: 'importNotPrompt',
  too_large: 'importTooLarge',
  unreadable: 'importUnreadable',
  not_stored: 'importNotStored',
} as const satisfies Readonly<Record<ImportProblemCode, string>>;

export default function ImportDialog(): JSX.Element | null {
  const chat = useChat();
  const report = importReport.value;
  const close = (): void => {
    chat.dialog.value = null;
  };
  if (!report) return null;
  const { numConversations, numPrompts, problems } = report;
  return (
    <Dialog title={t('importReport')} shape="box" onClose={close}>
      <div role="status">
        {numConversations > 0 && <p>{t('imported', { count: numConversations })}</p>}
        {numPrompts > 0 && <p>{t('importedPrompts', { count: numPrompts })}</p>}
        {numConversations + numPrompts === 0 && <p>{t('importNothing')}</p>}
      </div>
      {problems.length > 0 && (
        <>
          <p class="or">{t('importProblems', { count: problems.length })}</p>
          <ul class="report">
            {problems.slice(0, SHOWN).map(({ code, place }) => (
              <li key={`${place} ${code}`}>
                {t(TEXTS[code])}
                <span class="place">{place}</span>
              </li>
            ))}
            {problems.length > SHOWN && <li>{t('importMore', { count: problems.length - SHOWN })}</li>}
          </ul>
        </>
      )}
      <div class="actions">
        <Button kind="primary" onClick={close}>
          {core('close')}
        </Button>
      </div>
    </Dialog>
  );
}
