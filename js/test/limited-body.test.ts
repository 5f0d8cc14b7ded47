import { describe, expect, test, vi } from 'vitest';
import { bodyWithin } from '../src/limited-body.js';

/** A body that never ends, in pieces of 10 bytes; tells how many were asked for, and whether it was given up. */
function endless(): { request: Request; read: () => number; onCancel: ReturnType<typeof vi.fn> } {
  let numRead = 0;
  const onCancel = vi.fn();
  const pull = (controller: ReadableStreamDefaultController<Uint8Array>): void => {
    numRead += 1;
    controller.enqueue(new Uint8Array(10));
  };
  const body = new ReadableStream<Uint8Array>({ pull, cancel: onCancel }, { highWaterMark: 0 });
  const init = { method: 'POST', body, duplex: 'half' } as RequestInit;
  return { request: new Request('http://localhost/', init), read: () => numRead, onCancel };
}

const of = (body: BodyInit, headers: Record<string, string> = {}): Request =>
  new Request('http://localhost/', { method: 'POST', body, headers });

describe('a body', () => {
  test('within the limit is read, however it comes', async () => {
    const text = async (request: Request, max: number): Promise<string | null> => {
      const bytes = await bodyWithin(request, max);
      return bytes === null ? null : new TextDecoder().decode(bytes);
    };
    expect(await text(of('ab\u00e9'), 4)).toBe('ab\u00e9');
    expect(await text(of('ab\u00e9'), 3)).toBeNull();
    expect(await text(new Request('http://localhost/'), 0)).toBe('');
    const pieces = new ReadableStream({
      start(controller) {
        for (const piece of ['a', 'bc', '']) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    });
    const inPieces = new Request('http://localhost/', { method: 'POST', body: pieces, duplex: 'half' } as RequestInit);
    expect(await text(inPieces, 3)).toBe('abc');
    // As in browsers that do not show it.
    const hidden = of('abc');
    Object.defineProperty(hidden, 'body', { value: undefined });
    expect(await text(hidden.clone(), 3)).toBe('abc');
    expect(await text(hidden, 2)).toBeNull();
  });

  test('that is longer is given up as soon as that is known', async () => {
    const { request, read, onCancel } = endless();
    expect(await bodyWithin(request, 25)).toBeNull();
    expect([read(), onCancel.mock.calls.length]).toEqual([3, 1]);
  });

  test('that says it is longer is not read at all', async () => {
    const { request, read } = endless();
    request.headers.set('content-length', '26');
    expect(await bodyWithin(request, 25)).toBeNull();
    expect(read()).toBe(0);
  });
});
