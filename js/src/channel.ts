/**
 * How messages get to a worker: its own, through a port, or through a broadcast channel that only two listen to.
 */

import { PagewiseError } from './errors.js';
import { bad, show } from './fields.js';
import type { ToWorker } from './protocol.js';

/** One end. */
export interface Channel {
  /** Sends; what is in `transfer` is gone here afterwards. */
  post(message: ToWorker, transfer: Transferable[]): void;
  /** Ends it: nothing is told any more, and nothing arrives. A worker of one's own is ended. */
  end(): void;
}

/** What a channel tells. */
export interface ChannelEvents {
  /** A message, as it came. */
  onMessage(data: unknown): void;
  /** Nothing will come any more. */
  onBroken(error: PagewiseError): void;
}

/** Opens a channel. */
export type OpenChannel = (events: ChannelEvents) => Channel;

const broken = (what: string): PagewiseError => new PagewiseError('worker_crashed', what);

/** A worker of one's own. Throws where none can be made. */
export function workerChannel(createWorker: () => Worker): OpenChannel {
  return ({ onMessage, onBroken }) => {
    let worker: Worker;
    try {
      worker = createWorker();
    } catch (cause) {
      const text = cause instanceof Error ? cause.message : String(cause);
      throw new PagewiseError('worker_crashed', `the worker could not be started: ${text}`, { cause });
    }
    if (typeof worker?.postMessage !== 'function' || typeof worker.terminate !== 'function') {
      throw bad(`createWorker: it has to return a Worker, ${show(worker)} returned`);
    }
    worker.onmessage = ({ data }) => onMessage(data);
    worker.onerror = ({ message }) => {
      // Without a message, the script itself could not be loaded.
      const what = message || 'its script could not be loaded; is worker.js served, and allowed by worker-src?';
      onBroken(broken(`the worker failed: ${what}`));
    };
    worker.onmessageerror = () => onBroken(broken('a message of the worker could not be read'));
    return {
      post: (message, transfer) => worker.postMessage(message, transfer),
      end: () => worker.terminate(),
    };
  };
}

/** A worker that others use as well, behind a port. */
export function portChannel(port: MessagePort): OpenChannel {
  return ({ onMessage, onBroken }) => {
    port.onmessage = ({ data }) => onMessage(data);
    port.onmessageerror = () => onBroken(broken('a message of the worker could not be read'));
    return {
      post: (message, transfer) => port.postMessage(message, transfer),
      end: () => {
        port.onmessage = null;
        port.postMessage({ type: 'leave' } satisfies ToWorker);
        port.close();
      },
    };
  };
}

/**
 * The same through a broadcast channel of its own; what is transferred elsewhere is copied here. Nothing is sent before the
 * worker has said something: unlike a port, the channel keeps nothing for those who come late.
 */
export function broadcastChannel(channel: BroadcastChannel): OpenChannel {
  return ({ onMessage, onBroken }) => {
    let waiting: ToWorker[] | undefined = [];
    // Each end hears the other only: a broadcast does not come back to where it was sent.
    channel.onmessage = ({ data }) => {
      for (const message of waiting?.splice(0) ?? []) channel.postMessage(message);
      waiting = undefined;
      onMessage(data);
    };
    channel.onmessageerror = () => onBroken(broken('a message of the worker could not be read'));
    return {
      post: (message) => {
        if (waiting === undefined) channel.postMessage(message);
        else waiting.push(message);
      },
      end: () => {
        channel.onmessage = null;
        channel.postMessage({ type: 'leave' } satisfies ToWorker);
        channel.close();
      },
    };
  };
}
