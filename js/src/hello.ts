/**
 * Who speaks: the first message in either direction, and what is wrong when it is somebody else.
 */

import { type ErrorRecord, PagewiseError } from './errors.js';
import { type HelloMessage, PROTOCOL_VERSION } from './protocol.js';
import { VERSION } from './version.js';

/** Ours. */
export const HELLO: HelloMessage = { type: 'hello', protocol: PROTOCOL_VERSION, version: VERSION };

/** Whether the other side is of the same version. */
export function isOurs({ protocol, version }: HelloMessage): boolean {
  return protocol === PROTOCOL_VERSION && version === VERSION;
}

/** What the page throws about a worker of another version; undefined: it did not say which. */
export function otherWorker(version: string | undefined): PagewiseError {
  const text =
    `the worker is of pagewise ${version ?? 'without a version'}, the page of ${VERSION}: one of them comes from a cache. Reload ` +
    'the page; serve worker.js and what it imports under addresses that change with the version, or with Cache-Control: no-cache';
  return new PagewiseError('version_mismatch', text);
}

/** What the worker answers a page of another version. */
export function otherPage(): ErrorRecord {
  const message = `the page is not of pagewise ${VERSION}, as the worker is: reload it, without its caches if need be`;
  return { code: 'version_mismatch', message };
}
