/** Hands the chat to components; it outlives the view, so that an answer goes on while another view is open. */

import type { Session } from '../state/session';
import { useSession } from '../ui/context';
import { Chat } from './chat';

const chats = new WeakMap<Session, Chat>();

/** The session's one chat. */
export function chatOf(session: Session): Chat {
  const chat = chats.get(session) ?? new Chat(session);
  chats.set(session, chat);
  return chat;
}

export function useChat(): Chat {
  return chatOf(useSession());
}
