/** Tells the other tabs what changed, so that their lists stay in step. What changed is read from the store, never sent. */

export type ChatNews =
  | { readonly kind: 'changed'; readonly conversation: string }
  | { readonly kind: 'deleted'; readonly conversation: string }
  | { readonly kind: 'prompts' }
  | { readonly kind: 'erased' };

export interface NewsChannel {
  tell(news: ChatNews): void;
  close(): void;
}

const NAME = 'pagewise.chats';

/** A channel to the other tabs; without one the page works alone. */
export function openChannel(onNews: (news: ChatNews) => void): NewsChannel {
  if (typeof BroadcastChannel === 'undefined') return { tell: () => undefined, close: () => undefined };
  const channel = new BroadcastChannel(NAME);
  channel.onmessage = ({ data }: MessageEvent<ChatNews>) => onNews(data);
  let isOpen = true;
  return {
    tell: (news) => {
      // A write that was under way when the page let go of everything.
      if (isOpen) channel.postMessage(news);
    },
    close: () => {
      isOpen = false;
      channel.close();
    },
  };
}
