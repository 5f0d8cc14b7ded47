/**
 * Bodies of requests, which may be longer than anybody wants to hold.
 */

/** The bytes of a body; null of one that is longer than `max`, of which no more is read than it takes to know that. */
export async function bodyWithin(request: Request, max: number): Promise<Uint8Array | null> {
  if (Number(request.headers.get('content-length') ?? 0) > max) return null;
  const body = request.body as Request['body'] | undefined;
  if (body === null) return new Uint8Array(0);
  // Not every browser lets a request's body be read piece by piece.
  if (body === undefined) {
    const blob = await request.blob();
    return blob.size > max ? null : new Uint8Array(await blob.arrayBuffer());
  }
  const pieces: Uint8Array[] = [];
  let length = 0;
  const reader = body.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > max) {
      void reader.cancel().catch(() => undefined);
      return null;
    }
    pieces.push(value);
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}
