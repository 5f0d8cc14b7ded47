/**
 * Server-sent events of a response, as far as OpenAI's streams use them: the data of one event after another.
 */

/** Characters of one event, at most; whole answers have fewer. */
export const MAX_EVENT_CHARACTERS = 16 * 1024 ** 2;

/**
 * The `data` of each event, its lines joined; comments and other fields are left out. An abort ends the body, whether it is tied to
 * the signal or not.
 */
export async function* eventData(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<string, undefined> {
  const reader = body.getReader();
  const onAbort = (): void => void reader.cancel().catch(() => undefined);
  signal?.addEventListener('abort', onAbort);
  const decoder = new TextDecoder();
  let text = '';
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      text += done ? decoder.decode() : decoder.decode(value, { stream: true });
      // A line ends in LF, CR or both; a CR at the end may be half of both.
      for (let end = lineEnd(text, done); end !== null; end = lineEnd(text, done)) {
        const line = text.slice(0, end.at);
        text = text.slice(end.at + end.length);
        if (line.startsWith('data:')) data.push(line.slice(line[5] === ' ' ? 6 : 5));
        if (line !== '' || data.length === 0) continue;
        yield data.join('\n');
        data = [];
      }
      const length = data.reduce((sum, line) => sum + line.length, text.length);
      if (length > MAX_EVENT_CHARACTERS) throw new Error(`an event of over ${MAX_EVENT_CHARACTERS} characters`);
      // What the last empty line is missing behind was cut off.
      if (done) return undefined;
    }
  } finally {
    signal?.removeEventListener('abort', onAbort);
    await reader.cancel().catch(() => undefined);
  }
}

function lineEnd(text: string, isLast: boolean): { at: number; length: number } | null {
  const at = text.search(/[\r\n]/);
  if (at < 0) return null;
  if (text[at] === '\n') return { at, length: 1 };
  if (text[at + 1] === '\n') return { at, length: 2 };
  return at + 1 < text.length || isLast ? { at, length: 1 } : null;
}
