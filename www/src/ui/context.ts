/** Hands the session to components. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { Session } from '../state/session';

export const SessionContext = createContext<Session | null>(null);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('component used outside SessionContext');
  return session;
}
