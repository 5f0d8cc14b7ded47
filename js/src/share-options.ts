/**
 * Which tabs share an engine: those whose group is the same.
 */

import { bad, isPlainObject, show } from './fields.js';
import { checkOptions } from './options.js';
import type { EngineOptions, PartSpec, SourceSpec } from './protocol.js';
import { PROTOCOL_VERSION } from './protocol.js';
import { Sha256 } from './sha256.js';
import type { ShareOptions } from './sharing-types.js';
import { VERSION } from './version.js';

const MAX_NAME = 64;

/** Checks `share`; undefined when nothing is shared. */
export function checkShare(given: unknown): ShareOptions | undefined {
  if (given === undefined || given === false) return undefined;
  if (given === true) return {};
  if (!isPlainObject(given)) throw bad(`share: true, false or a plain object is needed, ${show(given)} given`);
  const kinds = { name: 'any', owner: 'any', createSharedWorker: 'function' } as const;
  const share = checkOptions<ShareOptions>('load: share', given, kinds);
  const { name, owner = 'auto' } = share;
  if (name !== undefined && (typeof name !== 'string' || name === '' || name.length > MAX_NAME)) {
    throw bad(`share.name: a text of 1 to ${MAX_NAME} characters is needed, ${show(name)} given`);
  }
  if (owner !== 'auto' && owner !== 'tab') {
    throw bad(`share.owner: 'auto' or 'tab' is needed, ${show(owner)} given`);
  }
  return share;
}

/**
 * The group's name, which its locks, channels and shared worker have as well. Another model, other options and another version
 * of the package make another group, with an engine of its own.
 */
export function groupOf(share: ShareOptions, source: SourceSpec, options: EngineOptions): string {
  const model = source.registry === undefined ? source.parts.map((part) => identityOf(part, share)) : source.registry;
  const sorted = Object.entries(options).sort(([a], [b]) => (a < b ? -1 : 1));
  const { name = 'default' } = share;
  const text = JSON.stringify([PROTOCOL_VERSION, name, source.id, model, sorted]);
  const hash = new Sha256().update(new TextEncoder().encode(text)).hex();
  return `pagewise-${VERSION}-${hash.slice(0, 32)}`;
}

function identityOf(part: PartSpec, share: ShareOptions): unknown {
  if (part.kind === 'url') return part.urls;
  const { size, name, lastModified } = part.blob as Partial<File> & Blob;
  if (name === undefined && share.name === undefined) {
    throw bad('share: a Blob does not say which model it is: give a File, or a share.name that no other model has');
  }
  return [size, name, lastModified];
}
