/**
 * Streams of chunks as server-sent events.
 */

import { isPlainObject } from './fields.js';
import { httpError } from './http-errors.js';
import type { RequestProgress, StreamOptions } from './types.js';

/** What chunks of both kinds have in common, as far as it matters here. */
interface AnyChunk {
  choices: readonly object[];
  progress?: RequestProgress;
}

/** A stream of which it is known where in the queue it is. */
export interface StartedStream {
  /** Chunks, the first ones included. */
  chunks: AsyncIterator<AnyChunk>;
  /** The first ones, which were read already. */
  first: AnyChunk[];
  /** Headers that say where it is. */
  headers: Record<string, string>;
  /** Whether the client wants progress. */
  includeProgress: boolean;
}

/**
 * Begins a stream and waits until it is known where in the queue it is, a step of the engine at most: what is refused by then
 * is a status, not an event.
 */
export async function startStream(
  params: { stream_options?: StreamOptions | null },
  create: (asked: { stream: true; stream_options: StreamOptions }) => Promise<AsyncIterable<AnyChunk>>,
): Promise<StartedStream> {
  const given: unknown = params.stream_options ?? {};
  const wanted = isPlainObject(given) ? (given.include_progress ?? false) : undefined;
  const includeProgress = wanted === true;
  // What is malformed goes on as it is, to be refused.
  const asked = typeof wanted === 'boolean' ? { ...(given as StreamOptions), include_progress: true } : given;
  const stream = await create({ stream: true, stream_options: asked as StreamOptions });
  const chunks = stream[Symbol.asyncIterator]();
  const first: AnyChunk[] = [];
  for (;;) {
    const { value, done } = await chunks.next();
    if (done === true) return { chunks, first, headers: {}, includeProgress };
    if (value.progress === undefined || includeProgress) first.push(value);
    if (value.progress !== undefined || !isOpening(value)) {
      return { chunks, first, headers: placeHeaders(value.progress), includeProgress };
    }
  }
}

/** The response that streams it. */
export function eventStream(started: StartedStream, headers: Record<string, string>, signal: AbortSignal): Response {
  const { chunks, first, includeProgress } = started;
  const encoder = new TextEncoder();
  const event = (data: string): Uint8Array => encoder.encode(`data: ${data}\n\n`);
  const next = async (): Promise<AnyChunk | undefined> => {
    const ready = first.shift();
    if (ready !== undefined) return ready;
    for (;;) {
      const { value, done } = await chunks.next();
      if (done === true) return undefined;
      if (value.progress === undefined || includeProgress) return value;
    }
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      // A comment, which clients skip: Firefox hands on a service worker's response no sooner than its first bytes.
      if (first.length === 0) controller.enqueue(encoder.encode(':\n\n'));
    },
    async pull(controller) {
      try {
        const chunk = await next();
        controller.enqueue(event(chunk === undefined ? '[DONE]' : JSON.stringify(chunk)));
        if (chunk === undefined) controller.close();
      } catch (error) {
        if (signal.aborted) return controller.error(signal.reason);
        controller.enqueue(event(JSON.stringify({ error: httpError(error).body })));
        controller.close();
      }
    },
    async cancel() {
      await chunks.return?.();
    },
  });
  const own = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' };
  return new Response(body, { headers: { ...own, ...headers, ...started.headers } });
}

/** Whether a chunk comes before anything was computed: it says who speaks. */
function isOpening({ choices }: AnyChunk): boolean {
  const [choice] = choices as readonly { delta?: { role?: string } }[];
  return choice?.delta?.role !== undefined;
}

function placeHeaders(progress: RequestProgress | undefined): Record<string, string> {
  const isWaiting = progress?.state === 'waiting';
  const headers = { 'x-pagewise-queue-depth': String(isWaiting ? progress.position : 0) };
  const waitMs = isWaiting ? progress.estimated_wait_ms : 0;
  return waitMs === null ? headers : { ...headers, 'x-pagewise-estimated-wait-ms': String(Math.round(waitMs)) };
}
