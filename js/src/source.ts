/**
 * From what the caller names to what the reader opens: addresses made absolute, registry ids looked up.
 */

import { cancelledError, PagewiseError } from './errors.js';
import { bad, isPlainObject, show } from './fields.js';
import type { PartSpec, SourceSpec } from './protocol.js';
import type { ModelSource, PartSource, Registry, RegistryEntry, SourceOptions } from './types.js';

/** Where ids are looked up by default, relative to the page. */
export const DEFAULT_REGISTRY = 'models/registry.json';

/** Resolves a source; fetches the registry only for an id. */
export async function resolveSource(source: ModelSource, options: SourceOptions): Promise<SourceSpec> {
  const headers = checkHeaders(options.headers);
  if (typeof source === 'string' && source.trim() === '') throw bad('source: an empty text');
  if (typeof source === 'string' && isRegistryId(source)) {
    const registryUrl = absolute('registry', options.registry ?? DEFAULT_REGISTRY);
    const entry = await lookUp(source, registryUrl, options.signal);
    const urls = entry.sources.map((url) => absolute(`registry: ${entry.id}`, url, registryUrl));
    const name = typeof entry.name === 'string' ? { name: entry.name } : {};
    const hash = isHash(entry.sha256) ? { sha256: entry.sha256.toLowerCase() } : {};
    const parts: PartSpec[] = [{ kind: 'url', urls, ...hash }];
    return { id: entry.id, ...name, registry: registryUrl, parts, bytes: entry.bytes, headers };
  }
  const sources: readonly PartSource[] = isList(source) ? source : [source];
  const parts = sources.map(partOf);
  const first = parts[0];
  if (first === undefined) throw bad('source: an empty list of parts');
  const name = first.kind === 'blob' ? first.name : (first.urls[0] ?? '');
  return { id: idOf(name), parts, headers };
}

/** Older registries have none. */
function isHash(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/i.test(value);
}

/** Whether a string names a registry entry rather than a file. */
export function isRegistryId(source: string): boolean {
  return !/[/:\\]/.test(source) && !source.toLowerCase().endsWith('.gguf');
}

function isList(source: ModelSource): source is readonly PartSource[] {
  return Array.isArray(source);
}

function partOf(source: PartSource): PartSpec {
  if (source instanceof Blob) return { kind: 'blob', blob: source, name: nameOf(source) };
  if (typeof source === 'string' || source instanceof URL) return { kind: 'url', urls: [absolute('source', source)] };
  throw bad('source: a URL, a File or Blob, a list of those, or a registry id');
}

function nameOf(blob: Blob): string {
  const name = (blob as Partial<File>).name;
  return typeof name === 'string' && name !== '' ? name : 'model';
}

/** `…/SmolLM2.Q4_1-00001-of-00002.gguf?x` becomes `SmolLM2.Q4_1`. */
function idOf(name: string): string {
  const path = name.startsWith('blob:') || name.startsWith('data:') ? 'model' : name.replace(/[?#].*$/, '');
  const file = path.slice(path.lastIndexOf('/') + 1);
  return file.replace(/(-\d{5}-of-\d{5})?\.gguf$/i, '') || 'model';
}

/** What `fetch` takes, besides the page's own protocol. */
const PROTOCOLS = /^(https?|blob|data|[a-z-]+-extension):$/;

/** The address that `url` means; `name` is what the caller calls it. */
function absolute(name: string, url: string | URL, base: string | undefined = pageUrl()): string {
  if (!(url instanceof URL) && (typeof url !== 'string' || url.trim() === '')) {
    throw bad(`${name}: an address is needed, ${show(url)} given`);
  }
  let address: URL;
  try {
    address = new URL(url, base);
  } catch {
    throw bad(`${name}: "${url}" is not a valid address`);
  }
  const { protocol, username, password } = address;
  // `fetch` refuses these as if the network were down.
  if (username !== '' || password !== '') {
    throw bad(`${name}: an address with a user name or password cannot be fetched; give an Authorization header`);
  }
  if (PROTOCOLS.test(protocol) || (base !== undefined && protocol === new URL(base).protocol)) return address.href;
  throw bad(`${name}: "${url}" cannot be fetched: http and https can, and a file that the visitor chose`);
}

function pageUrl(): string | undefined {
  return typeof document === 'undefined' ? globalThis.location?.href : document.baseURI;
}

/** Refuses headers that `fetch` would refuse as if the network were down. Their values may be secret and are not shown. */
function checkHeaders(headers: unknown): Record<string, string> {
  if (headers === undefined) return {};
  if (!isPlainObject(headers)) throw bad(`headers: a plain object from name to text is needed, ${show(headers)} given`);
  const checked: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string') throw bad(`headers: ${show(name)}: a text is needed`);
    if (name.toLowerCase() === 'range') throw bad(`headers: ${show(name)} is Pagewise's own`);
    try {
      new Headers([[name, value]]);
    } catch {
      throw bad(`headers: ${show(name)} is not a valid name, or its value not a valid one`);
    }
    checked[name] = value;
  }
  return checked;
}

async function lookUp(id: string, registryUrl: string, signal: AbortSignal | undefined): Promise<RegistryEntry> {
  const { models } = await fetchRegistry(registryUrl, signal);
  const entry = models.find((model) => model.id === id);
  if (entry !== undefined) return entry;
  const known = models.map((model) => model.id).join(', ');
  throw bad(`source: no model "${id}" in ${registryUrl}; it has ${known}`);
}

/** Fetches and checks a registry. */
async function fetchRegistry(url: string, signal: AbortSignal | undefined): Promise<Registry> {
  let response: Response;
  try {
    response = await fetch(url, signal === undefined ? {} : { signal });
  } catch (cause) {
    if (signal?.aborted) throw cancelledError(signal);
    throw new PagewiseError('network', `could not reach the registry ${url}`, { url, cause });
  }
  if (!response.ok) {
    const { status } = response;
    throw new PagewiseError('network', `the registry ${url} answered ${status}`, { url, status });
  }
  let registry: unknown;
  try {
    registry = await response.json();
  } catch (cause) {
    if (signal?.aborted) throw cancelledError(signal);
    throw new PagewiseError('network', `the registry ${url} is not JSON`, { url, cause });
  }
  if (isRegistry(registry)) return registry;
  throw new PagewiseError('network', `the registry ${url} has no list "models" of {id, sources, bytes}`, { url });
}

function isRegistry(value: unknown): value is Registry {
  const models = (value as Partial<Registry> | null)?.models;
  return Array.isArray(models) && models.every(isEntry);
}

function isEntry(value: unknown): value is RegistryEntry {
  const entry = value as Partial<RegistryEntry> | null;
  const sources: unknown = entry?.sources;
  return (
    typeof entry?.id === 'string' &&
    Array.isArray(sources) &&
    sources.length > 0 &&
    sources.every((url) => typeof url === 'string') &&
    Number.isSafeInteger(entry.bytes)
  );
}
