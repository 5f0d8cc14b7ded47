/** Starts the page. */
import { render } from 'preact';
import { App } from './state/app';
import './styles/index.css';
import { Page } from './ui/page';

const root = document.getElementById('app');
if (root) render(<Page app={new App()} />, root);
