/** Starts the page. */
import { render } from 'preact';
import { followLang } from './i18n/lang';
import { workOffline } from './offline/offline';
import { Frame } from './shell/frame';
import { view } from './shell/router';
import { followScheme } from './shell/scheme';
import { VIEW_INFO } from './shell/views';
import { Session } from './state/session';
import './styles/index.css';

// Asked for before anything is drawn: the frame takes it up when it comes, and says so when it does not.
void VIEW_INFO[view.peek()].load().catch(() => undefined);
followLang();
followScheme();
const root = document.getElementById('app');
if (root) {
  const session = new Session();
  render(<Frame session={session} />, root);
  workOffline(session);
}
