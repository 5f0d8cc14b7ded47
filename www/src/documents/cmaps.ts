/**
 * Tables that say which characters the codes of Chinese, Japanese and Korean fonts are, for PDF files that do not bring them.
 * All in one module, which is loaded with the first such file and kept for use offline. Those for UTF-8 and UTF-32 are left
 * out: PDF files may not name them.
 */
const modules = import.meta.glob<string>(
  ['../../../node_modules/pdfjs-dist/cmaps/*.bcmap', '!**/*UTF8*', '!**/*UTF32*'],
  { query: '?url&inline', import: 'default', eager: true, exhaustive: true },
);

const tables = new Map(Object.entries(modules).map(([path, url]) => [path.slice(path.lastIndexOf('/') + 1), url]));

/** A table's bytes, by the name of its file. */
export function cmapBytes(filename: string): Uint8Array {
  const url = tables.get(filename);
  if (url === undefined) throw new Error(`no character map ${filename}`);
  return Uint8Array.from(atob(url.slice(url.indexOf(',') + 1)), (char) => char.charCodeAt(0));
}
