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
export function restoreCache(engine: WasmEngine, data: Blob, cache: EngineCacheOptions): Promise<RestoredPrefix> {
  const part = new BlobPart(data, 'the saved prefix');
  const source = {
    numParts: 1,
    partLength: () => part.length(),
    read: (_: number, offset: number, length: number) => part.read(offset, length),
  };
  return engine.cacheRestore(source, cache);
}
