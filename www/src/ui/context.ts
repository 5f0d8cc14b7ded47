/** Hands the page's state to components. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { App } from '../state/app';

export const AppContext = createContext<App | null>(null);

export function useApp(): App {
  const app = useContext(AppContext);
  if (!app) throw new Error('component used outside AppContext');
  return app;
}
