/** What all labs have in common: the bar, a column that scrolls, and a first sentence. */
import type { ComponentChildren, JSX } from 'preact';
import { NoticeList } from '../ui/notices';
import { view } from './router';
import { ViewBar } from './view-bar';
import { VIEW_INFO } from './views';

export interface LabViewProps {
  /** One or two sentences: what can be seen here. */
  readonly lead: string;
  /** Buttons at the end of the bar. */
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function LabView({ lead, actions, children }: LabViewProps): JSX.Element {
  const title = VIEW_INFO[view.value].title();
  return (
    <>
      <ViewBar title={title}>{actions}</ViewBar>
      {/* It scrolls, so the keyboard has to reach it. */}
      <main class="lab" tabIndex={0} aria-label={title}>
        <div class="lab-column">
          <NoticeList />
          <p class="lab-lead">{lead}</p>
          {children}
        </div>
      </main>
    </>
  );
}
