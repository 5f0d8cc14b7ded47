/**
 * A file on a server that is downloaded to be kept: what it is, and answers that are proved to be of it.
 */

import { ByteStream, request } from './byte-stream.js';
import { PagewiseError } from './errors.js';
import { checkIsGguf, totalOf } from './http-part.js';
import type { RemoteVersion } from './journal.js';
import { type NetworkEnvironment, TransientError, withRetries } from './retry.js';

/** Bytes that are looked at before anything is stored. */
const HEAD_BYTES = 16;

/** A file that is there. */
export interface RemoteFile extends RemoteVersion {
  /** Whether its server sends ranges. */
  hasRanges: boolean;
}

/** How requests are sent. */
export interface Connection {
  /** The network. */
  environment: NetworkEnvironment;
  /** The caller's. */
  headers: Record<string, string>;
  /** Ends all of them. */
  signal: AbortSignal;
}

/** What was stored of a part is worth nothing: the file changed, or what was written is gone. */
export class StaleError extends Error {}

/** Asks for a file's size, version and first bytes; of several addresses the first that has a model is used. */
export async function probe(connection: Connection, urls: readonly string[]): Promise<RemoteFile> {
  let failure: unknown;
  for (const url of urls) {
    try {
      return await withRetries(
        connection.environment,
        () => 0,
        () => probeUrl(connection, url),
      );
    } catch (error) {
      if (connection.signal.aborted) throw error;
      failure ??= error;
    }
  }
  throw failure;
}

async function probeUrl(connection: Connection, url: string): Promise<RemoteFile> {
  const response = await send(connection, url, 0, { Range: `bytes=0-${HEAD_BYTES - 1}` });
  if (response.status === 416) throw new PagewiseError('corrupt_model', `${url} is empty`, { url });
  const stream = new ByteStream(connection.environment, url, response, 0);
  const head = new Uint8Array(HEAD_BYTES);
  while (stream.position < HEAD_BYTES) {
    const { position } = stream;
    const piece = await stream.pull(HEAD_BYTES - position);
    if (piece === undefined) break;
    head.set(piece, position);
  }
  stream.close();
  checkIsGguf(url, head, response);
  const magic = String.fromCharCode(...head.subarray(0, 4));
  if (magic !== 'GGUF') throw new PagewiseError('corrupt_model', `${url} is not a GGUF file`, { url, offset: 0 });
  const hasRanges = response.status === 206;
  const size = (hasRanges ? totalOf(response) : lengthOf(response)) ?? (await sizeByHead(connection, url));
  return { url, size, ...versionOf(response), hasRanges };
}

/** For servers that do not let scripts of other origins see `Content-Range`, or send bodies of unknown length. */
async function sizeByHead({ environment, headers, signal }: Connection, url: string): Promise<number> {
  const size = lengthOf(await request(environment, url, { method: 'HEAD', headers, signal }, 0));
  if (size !== undefined && size > 0) return size;
  const message = `${url} does not tell its size, so it could not be known to be whole, and is not stored`;
  throw new PagewiseError('network', message, { url });
}

/** The bytes from `from` to `end`, from a server that still has the same file; throws {@link StaleError} when it has another. */
export async function openRange(
  connection: Connection,
  file: RemoteFile,
  from: number,
  end: number,
): Promise<ByteStream> {
  const { environment } = connection;
  const headers = file.hasRanges ? { ...conditionOf(environment, file), Range: `bytes=${from}-${end - 1}` } : {};
  const response = await send(connection, file.url, from, headers);
  try {
    checkAnswer(file, response, from, end);
  } catch (error) {
    void response.body?.cancel();
    throw error;
  }
  const stream = new ByteStream(environment, file.url, response, file.hasRanges ? from : 0);
  while (stream.position < from) {
    if ((await stream.pull(from - stream.position)) === undefined) throw tooFew(file.url, stream.position);
  }
  return stream;
}

/** The error of an answer that ends before its time. */
export function tooFew(url: string, offset: number): TransientError {
  return new TransientError('network', `${url} sent too few bytes at byte ${offset}`, { url, offset });
}

function send(connection: Connection, url: string, offset: number, more: Record<string, string>): Promise<Response> {
  const { environment, headers, signal } = connection;
  return request(environment, url, { headers: { ...headers, ...more }, signal }, offset);
}

/**
 * `If-Range`, on the page's own origin only: elsewhere it would have the browser ask for leave first, which many servers of
 * files refuse. The answer's version is compared in any case.
 */
function conditionOf(environment: NetworkEnvironment, { url, etag, modified }: RemoteFile): Record<string, string> {
  if (new URL(url).origin !== environment.origin) return {};
  const version = etag === null || etag.startsWith('W/') ? modified : etag;
  return version === null ? {} : { 'If-Range': version };
}

function checkAnswer(file: RemoteFile, response: Response, from: number, end: number): void {
  const { url, size } = file;
  const { status } = response;
  const details = { url, status, offset: from };
  // A hotel's or a proxy's page: the next answer may be the file again.
  if (response.headers.get('content-type')?.startsWith('text/html')) {
    throw new TransientError('network', `${url} answered with a web page at byte ${from}`, details);
  }
  const [etag, modified] = [response.headers.get('etag'), response.headers.get('last-modified')];
  const isOther = status === 416 || status !== (file.hasRanges ? 206 : 200) || !isSameVersion(file, { etag, modified });
  if (isOther) throw new StaleError(`${url} changed while it was being downloaded`);
  if (!file.hasRanges) {
    const length = lengthOf(response);
    if (length !== undefined && length !== size) throw new StaleError(`${url} has another size than before`);
    return;
  }
  const range = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(response.headers.get('content-range') ?? '');
  if (range !== null && range[3] !== '*' && Number(range[3]) !== size) {
    throw new StaleError(`${url} has another size than before`);
  }
  const length = range === null ? lengthOf(response) : Number(range[2]) + 1 - Number(range[1]);
  const isAsked = (range === null || Number(range[1]) === from) && (length === undefined || length === end - from);
  if (!isAsked) {
    const message = `${url} answered with another range than asked at byte ${from}`;
    throw new TransientError('network', message, details);
  }
}

/** Whether nothing speaks against two answers being of the same file. */
function isSameVersion(one: Version, other: Version): boolean {
  if (one.etag !== null && other.etag !== null) return one.etag === other.etag;
  return one.modified === null || other.modified === null || one.modified === other.modified;
}

/** Whether what was stored of a file can be gone on with. */
export function isContinuable(
  stored: RemoteVersion & { expected: string | null },
  file: RemoteVersion,
  expected: string | null,
): boolean {
  if (stored.size !== file.size) return false;
  if (stored.expected !== null && expected !== null && stored.expected !== expected) return false;
  // The hash decides at the end.
  if (stored.url !== file.url) return expected !== null;
  const isKnown = (stored.etag !== null && file.etag !== null) || (stored.modified !== null && file.modified !== null);
  return isKnown ? isSameVersion(stored, file) : expected !== null;
}

type Version = Pick<RemoteVersion, 'etag' | 'modified'>;

function versionOf({ headers }: Response): Version {
  return { etag: headers.get('etag'), modified: headers.get('last-modified') };
}

/** Bytes of the body, unless it is compressed on the way. */
function lengthOf({ headers }: Response): number | undefined {
  const length = headers.get('content-encoding') === null ? headers.get('content-length') : null;
  return length === null || !/^\d+$/.test(length) ? undefined : Number(length);
}
