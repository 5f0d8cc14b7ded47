/**
 * How the tabs of a group find the one that leads: through a shared worker, which passes ports on (see {@link Broker}), or by a
 * broadcast channel, where there are no shared workers. Nothing here decides who leads; locks do.
 */

import { broadcastChannel, type OpenChannel, portChannel } from './channel.js';

/** From a tab to the broker or to all others: I lead from now on; or, with a port or the name of a channel: serve me. */
export type RendezvousMessage = { type: 'lead' } | { type: 'join'; via: MessagePort | string };

/** What a tab is told. */
export interface RendezvousEvents {
  /** Another tab leads now. */
  onLeader(): void;
  /** Somebody wants to be served; meant for the one that leads. */
  onJoin(via: MessagePort | string): void;
}

/** A tab's place in it. */
export interface Rendezvous {
  /** Says that this tab leads. */
  lead(): void;
  /** Asks whoever leads to be served: nothing comes of it while nobody does. */
  join(): OpenChannel;
  /** Leaves. */
  close(): void;
}

/** Through a broker behind a port. */
export function brokered(port: MessagePort, { onLeader, onJoin }: RendezvousEvents): Rendezvous {
  port.onmessage = ({ data }: MessageEvent<RendezvousMessage>) => {
    if (data.type === 'lead') onLeader();
    else if (data.type === 'join') onJoin(data.via);
  };
  const post = (message: RendezvousMessage, transfer: Transferable[] = []): void => port.postMessage(message, transfer);
  return {
    lead: () => post({ type: 'lead' }),
    join: () => {
      const { port1, port2 } = new MessageChannel();
      post({ type: 'join', via: port2 }, [port2]);
      return portChannel(port1);
    },
    close: () => {
      port.onmessage = null;
      port.close();
    },
  };
}

/** Through broadcast channels: one for all, and one for each tab that is served. */
export function broadcast(
  open: (name: string) => BroadcastChannel,
  group: string,
  { onLeader, onJoin }: RendezvousEvents,
): Rendezvous {
  const channel = open(group);
  channel.onmessage = ({ data }: MessageEvent<RendezvousMessage>) => {
    if (data.type === 'lead') onLeader();
    else if (data.type === 'join') onJoin(data.via);
  };
  const post = (message: RendezvousMessage): void => channel.postMessage(message);
  return {
    lead: () => post({ type: 'lead' }),
    join: () => {
      const via = `${group}-${crypto.randomUUID()}`;
      const own = open(via);
      post({ type: 'join', via });
      return broadcastChannel(own);
    },
    close: () => {
      channel.onmessage = null;
      channel.close();
    },
  };
}

/** The shared worker's part: remembers who leads, passes everything else on, and looks into nothing. */
export class Broker {
  readonly #tabs = new Set<MessagePort>();
  #leader: MessagePort | undefined;

  /** Adds a tab; its first message has come already. Tabs that are gone are not noticed, and cost nothing. */
  connect(port: MessagePort, first: unknown): void {
    this.#tabs.add(port);
    port.onmessage = ({ data }) => this.#receive(port, data as Partial<RendezvousMessage> | null);
    this.#receive(port, first as Partial<RendezvousMessage> | null);
  }

  #receive(from: MessagePort, message: Partial<RendezvousMessage> | null): void {
    if (message?.type === 'lead') {
      this.#leader = from;
      for (const port of this.#tabs) if (port !== from) port.postMessage({ type: 'lead' } satisfies RendezvousMessage);
    } else if (message?.type === 'join' && message.via instanceof MessagePort) {
      const { via } = message;
      if (this.#leader === undefined || this.#leader === from) via.close();
      else this.#leader.postMessage({ type: 'join', via } satisfies RendezvousMessage, [via]);
    }
  }
}
