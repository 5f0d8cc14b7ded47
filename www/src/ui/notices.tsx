/** Short messages, each with a button that takes it away. */
import type { JSX } from 'preact';
import { t } from '../i18n/core';
import { useSession } from './context';
import { IconButton } from './kit';

export function NoticeList(): JSX.Element {
  const { notices } = useSession();
  return (
    <>
      {notices.list.value.map(({ id, text, action }) => (
        <div key={id} class="notice" role="status">
          <p>{text()}</p>
          {action && (
            <button
              type="button"
              class="button quiet"
              onClick={() => {
                notices.dismiss(id);
                action.run();
              }}
            >
              {action.label()}
            </button>
          )}
          <IconButton icon="close" label={t('dismiss')} onClick={() => notices.dismiss(id)} />
        </div>
      ))}
    </>
  );
}
