/**
 * Saved prefixes in the worker: blobs, of which only a few MiB are in memory at a time.
 */

import type { RestoredPrefix } from './cache-types.js';
import type { EngineCacheOptions, EnginePrefix } from './protocol.js';
import { BlobPart } from './reader.js';
import type { WasmEngine } from './wasm.js';

/** What the cache has of a prefix. */
export async function saveCache(engine: WasmEngine, salt: string, prefix: EnginePrefix): Promise<Blob> {
  const parts: Blob[] = [];
  // A blob of its own for each piece: the browser may keep those on disk.
  await engine.cacheSave(salt, prefix, (bytes) => void parts.push(new Blob([bytes as Uint8Array<ArrayBuffer>])));
  return new Blob(parts, { type: 'application/octet-stream' });
}

/** Brings it back. */
export function restoreCache(
  engine: WasmEngine,
  data: Blob | ArrayBuffer,
  cache: EngineCacheOptions,
): Promise<RestoredPrefix> {
  const part = data instanceof Blob ? new BlobPart(data, 'the saved prefix') : new BufferPart(data);
  const source = {
    numParts: 1,
    partLength: () => part.length(),
    read: (_: number, offset: number, length: number) => part.read(offset, length),
  };
  return engine.cacheRestore(source, cache);
}

/** A buffer that was handed over. */
class BufferPart {
  readonly #bytes: Uint8Array;

  constructor(data: ArrayBuffer) {
    this.#bytes = new Uint8Array(data);
  }

  async length(): Promise<number> {
    return this.#bytes.length;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    return this.#bytes.subarray(offset, offset + length);
  }
}
