/** Names texts by what they say, so that the same passage is kept and found once. */
import type { Draft } from './split';

/** SHA-256 of a text, whatever its white space. */
export async function hashOf(text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text.normalize('NFKC').replace(/\s+/g, ' ').trim());
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Drafts with their hashes, without those whose text was there before in the same document. */
export async function dedupe(
  drafts: readonly Draft[],
): Promise<{ readonly unique: readonly (Draft & { hash: string })[]; readonly numDuplicates: number }> {
  const hashes = await Promise.all(drafts.map(({ text }) => hashOf(text)));
  const seen = new Set<string>();
  const unique = drafts.flatMap((draft, index) => {
    const hash = hashes[index] ?? '';
    if (seen.has(hash)) return [];
    seen.add(hash);
    return [{ ...draft, hash }];
  });
  return { unique, numDuplicates: drafts.length - unique.length };
}
