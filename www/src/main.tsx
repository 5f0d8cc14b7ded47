/** Starts the page. */
import { render } from 'preact';
import { followLang } from './i18n/lang';
import { workOffline } from './offline/offline';
import { Frame } from './shell/frame';
import { followScheme } from './shell/scheme';
import { Session } from './state/session';
import './styles/index.css';

followLang();
followScheme();
const root = document.getElementById('app');
if (root) {
  const session = new Session();
  render(<Frame session={session} />, root);
  workOffline(session);
}
