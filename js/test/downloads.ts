/**
 * What the tests of downloads have in common: a server, a disk, and a model that is downloaded from one to the other.
 */

import { createHash } from 'node:crypto';
import type { SourceSpec } from '../src/protocol.js';
import { type FoundModel, type ModelDownloadOptions, StoredModels } from '../src/stored-models.js';
import { FakeServer, modelFile } from './fake-server.js';
import { FakeDisk } from './fake-storage.js';

/** A file of eleven chunks in four requests. */
export const SETTINGS = { chunkBytes: 1000, chunksPerRequest: 3, numLanes: 3 };
export const FILE = modelFile(10_500);
export const NEWER = modelFile(10_500, 2);
export const URL_A = 'https://files.example/a';
export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

export let server: FakeServer;
export let disk: FakeDisk;

/** Before each test. */
export function reset(): void {
  server = new FakeServer();
  server.files.set(URL_A, { bytes: FILE, etag: '"1"' });
  newDisk();
}

/** As if nothing had ever been stored. */
export function newDisk(): void {
  disk = new FakeDisk();
}

/** As after a reload: nothing is left but the disk. */
export const models = (): StoredModels => new StoredModels(disk.environment, server.network, SETTINGS);
/** One model, of one part unless there are more addresses; `more` is added to each. */
export const source = (more: { sha256?: string } = {}, ...urls: string[]): SourceSpec => ({
  id: 'm',
  parts: (urls.length === 0 ? [URL_A] : urls).map((url) => ({ kind: 'url', urls: [url], ...more })),
  headers: {},
});
/** Downloads it. */
export const load = (spec = source(), options?: ModelDownloadOptions): Promise<FoundModel> =>
  models().download(spec, options);

/** The bytes of its parts, if it is there. */
export async function stored(spec = source()): Promise<Uint8Array[] | undefined> {
  const found = await models().find(spec);
  if (found === undefined) return undefined;
  return Promise.all(
    found.parts.map(async (part) => {
      if (part.kind !== 'blob') throw new Error('not a blob');
      return new Uint8Array(await part.blob.arrayBuffer());
    }),
  );
}

/** Lets so many requests for bytes through, breaks the last of them, and then refuses everything. */
export function cutOff(numRequests: number): void {
  let numSeen = 0;
  server.intercept = (asked, file) => {
    if (asked.range?.[1] === 16) return undefined;
    numSeen += 1;
    if (numSeen === numRequests) return server.answer(asked, file, 1300);
    return numSeen > numRequests ? new Response(null, { status: 503 }) : undefined;
  };
}

/** Lets no bytes through until it is called. */
export function hold(): () => void {
  let release = (): void => undefined;
  const gate = new Promise<undefined>((resolve) => {
    release = () => resolve(undefined);
  });
  server.intercept = ({ range }) => (range?.[1] === 16 ? undefined : gate);
  return release;
}

/** Resolves when the first bytes were asked for. */
export async function whenAsked(): Promise<void> {
  while (server.ranges.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
}

/** Everything works again. */
export function repair(): void {
  server.intercept = () => undefined;
  server.requests.length = 0;
}
