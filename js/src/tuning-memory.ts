/**
 * Where the choice of kernels is remembered: measuring it takes a second, and its outcome changes only with the GPU, the
 * browser or the version of Pagewise, all of which are in the key.
 */

/** A memory of choices, by key; both are texts that only the module understands. */
export interface TuningMemory {
  /** All that is remembered; nothing where the browser allows no storage. */
  recall(): Promise<Record<string, string>>;
  /** Remembers a choice. */
  remember(key: string, choice: string): Promise<void>;
}

/** Choices that are remembered, the latest. */
const MAX_REMEMBERED = 64;
const CACHE = 'pagewise-tuning';

/**
 * Remembers in the browser's cache storage; forgets at once where there is none (as in private windows). `browser` is the
 * user agent: another version has other compilers and drivers.
 */
export function browserMemory(caches: CacheStorage | undefined, origin: string, browser: string): TuningMemory {
  const prefix = `${browser}\n`;
  const url = new URL('/pagewise-tuning.json', origin).href;
  const read = async (): Promise<[string, string][]> => {
    const cache = await caches?.open(CACHE);
    const entries: unknown = await (await cache?.match(url))?.json();
    if (!Array.isArray(entries)) return [];
    return entries.filter((entry): entry is [string, string] => {
      return Array.isArray(entry) && entry.length === 2 && entry.every((text) => typeof text === 'string');
    });
  };
  return {
    recall: async () => {
      const own = (await read().catch(() => [])).filter(([key]) => key.startsWith(prefix));
      return Object.fromEntries(own.map(([key, choice]) => [key.slice(prefix.length), choice]));
    },
    remember: async (key, choice) => {
      try {
        const others = (await read()).filter(([other]) => other !== prefix + key);
        const entries = [...others, [prefix + key, choice]].slice(-MAX_REMEMBERED);
        await (await caches?.open(CACHE))?.put(url, new Response(JSON.stringify(entries)));
      } catch {
        // The next load measures again.
      }
    },
  };
}
