/** Which model: one of the registry, any URL, or files from this computer. */

/** The list of known models, a file beside the page. */
export const REGISTRY_URL = 'models/registry.json';

/** A known model, as shown. */
export interface KnownModel {
  readonly id: string;
  readonly name: string;
  readonly bytes: number | null;
  readonly quantisation: string;
  readonly licence: string;
}

export type ModelChoice =
  | { readonly kind: 'known'; readonly id: string; readonly name: string }
  | { readonly kind: 'url'; readonly url: string }
  /** One file, or all parts of a split model in order. */
  | { readonly kind: 'files'; readonly files: readonly File[] };

/** What `Engine.load` takes for a choice. */
export function toSource(choice: ModelChoice): string | readonly File[] | File {
  switch (choice.kind) {
    case 'known':
      return choice.id;
    case 'url':
      return choice.url;
    case 'files':
      return choice.files.length === 1 && choice.files[0] ? choice.files[0] : choice.files;
  }
}

/** The name to show for a choice. */
export function choiceName(choice: ModelChoice): string {
  switch (choice.kind) {
    case 'known':
      return choice.name;
    case 'url':
      return fileName(choice.url);
    case 'files':
      return choice.files[0]?.name ?? 'file';
  }
}

/** Files in the order of their names, which is the order of the parts of a split model. */
export function choiceFromFiles(files: Iterable<File>): ModelChoice | null {
  const sorted = [...files].sort((a, b) => a.name.localeCompare(b.name, 'en'));
  return sorted.length === 0 ? null : { kind: 'files', files: sorted };
}

/** A registry id or the address of a file, as typed or as in `?model=`; null when it is neither. */
export function parseChoice(text: string, base: string = document.baseURI): ModelChoice | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  // The package's own rule for telling ids from addresses.
  const isId = !/[/:]/.test(trimmed) && !trimmed.toLowerCase().endsWith('.gguf');
  if (isId) return /\s/.test(trimmed) ? null : { kind: 'known', id: trimmed, name: trimmed };
  if (!URL.canParse(trimmed, base)) return null;
  const url = new URL(trimmed, base);
  // The page's policy lets nothing be read over plain http, but for its own server.
  const isReadable = url.protocol === 'https:' || url.origin === new URL(base).origin;
  return isReadable ? { kind: 'url', url: url.href } : null;
}

/** Reads the list of known models, the default first. Empty when it cannot be read. */
export async function fetchKnownModels(url: string = REGISTRY_URL): Promise<KnownModel[]> {
  try {
    const response = await fetch(new URL(url, document.baseURI));
    if (!response.ok) return [];
    return parseRegistry(await response.json());
  } catch {
    // A page without its registry still loads URLs and files.
    return [];
  }
}

/** The entries of a registry that have an id, in its order: the first is the default. */
export function parseRegistry(json: unknown): KnownModel[] {
  const models = isRecord(json) && Array.isArray(json.models) ? json.models.filter(isRecord) : [];
  const known = models.filter((model) => typeof model.id === 'string');
  return known.map((model) => {
    const id = String(model.id);
    return {
      id,
      name: text(model.name) || id,
      bytes: typeof model.bytes === 'number' ? model.bytes : null,
      quantisation: text(model.quantisation),
      licence: text(model.licence),
    };
  });
}

export function chooseKnown(model: KnownModel): ModelChoice {
  return { kind: 'known', id: model.id, name: model.name };
}

function fileName(url: string): string {
  const last = new URL(url).pathname.split('/').at(-1);
  try {
    return last ? decodeURIComponent(last) : url;
  } catch {
    // A per cent sign that encodes nothing is allowed in an address.
    return last ?? url;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
