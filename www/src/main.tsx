/** Starts the page. */
import { render } from 'preact';
import { followLang } from './i18n/lang';
import { Frame } from './shell/frame';
import { followScheme } from './shell/scheme';
import { Session } from './state/session';
import './styles/index.css';

followLang();
followScheme();
const root = document.getElementById('app');
if (root) render(<Frame session={new Session()} />, root);
