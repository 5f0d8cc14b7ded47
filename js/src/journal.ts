/**
 * A stored model's journal: what it is, which chunks of it are there, whether it is whole. One line of JSON for each thing that
 * happened, so that a line that was cut short by a crash loses that line and nothing else.
 */

import type { SourceSpec } from './protocol.js';
import { Sha256 } from './sha256.js';

const VERSION = 1;

/** What a server told about a file. */
export interface RemoteVersion {
  /** Where it is. */
  url: string;
  /** Bytes. */
  size: number;
  /** Null when the server does not tell it, or not to scripts. */
  etag: string | null;
  /** As {@link etag}. */
  modified: string | null;
}

/** One part of a model. */
export interface JournalPart extends RemoteVersion {
  /** The hash that it has to have; null when nobody said. */
  expected: string | null;
  /** Chunks that are there. */
  chunks: Set<number>;
  /** Its hash, once all of it is there and right. */
  sha256?: string;
}

/** First line: what the folder is for. */
export interface JournalHeader {
  /** The model's id. */
  id: string;
  /** What the registry calls it. */
  name?: string;
  /** Where the id was looked up, if it was. */
  registry?: string;
  /** The address of each part. */
  urls: string[];
  /** Bytes of a chunk. */
  chunkBytes: number;
}

/** All of it. */
export interface Journal extends JournalHeader {
  /** As far as they were asked for. */
  parts: (JournalPart | undefined)[];
  /** When the whole model was there and right, in milliseconds since 1970. */
  completedMs?: number;
}

type Line =
  | ({ version: number } & JournalHeader)
  | ({ part: number; expected: string | null } & RemoteVersion)
  | { part: number; chunk: number }
  | { part: number; sha256: string }
  | { completedMs: number };

/** A line as it is added: what an earlier one lost its end to begins anew. */
export function journalLine(line: Line): string {
  return `\n${JSON.stringify(line)}`;
}

/** The first line. */
export function headerLine(header: JournalHeader): string {
  return journalLine({ version: VERSION, ...header });
}

/** Reads a journal; undefined when there is none that this version understands. */
export function parseJournal(text: string): Journal | undefined {
  let journal: Journal | undefined;
  for (const json of text.split('\n')) {
    const line = parseLine(json);
    if (line === undefined) continue;
    if ('version' in line) {
      const { version, ...header } = line;
      if (version !== VERSION || !Array.isArray(header.urls)) return undefined;
      journal = { ...header, parts: header.urls.map(() => undefined) };
    } else if (journal !== undefined) apply(journal, line);
  }
  return journal;
}

function parseLine(json: string): Line | undefined {
  if (json === '') return undefined;
  try {
    const line: unknown = JSON.parse(json);
    return typeof line === 'object' && line !== null ? (line as Line) : undefined;
  } catch {
    return undefined;
  }
}

function apply(journal: Journal, line: Exclude<Line, { version: number }>): void {
  if ('completedMs' in line) {
    journal.completedMs = line.completedMs;
    return;
  }
  if ('url' in line) {
    const { part, ...version } = line;
    journal.parts[part] = { ...version, chunks: new Set() };
    return;
  }
  const part = journal.parts[line.part];
  if (part === undefined) return;
  if ('chunk' in line) part.chunks.add(line.chunk);
  else part.sha256 = line.sha256;
}

/** Bytes of a chunk: the last one of a part may be shorter. */
export function chunkLength(size: number, chunkBytes: number, chunk: number): number {
  return Math.min(chunkBytes, size - chunk * chunkBytes);
}

/** Bytes of a part that are there. */
export function storedBytes(part: JournalPart, chunkBytes: number): number {
  let sum = 0;
  for (const chunk of part.chunks) sum += chunkLength(part.size, chunkBytes, chunk);
  return sum;
}

/** The address that stands for each part: the first of those it can be had from. Empty when there are others than URLs. */
export function addressesOf(source: SourceSpec): string[] {
  const urls = source.parts.map((part) => (part.kind === 'url' ? (part.urls[0] ?? '') : ''));
  return urls.every((url) => /^https?:/.test(url)) ? urls.map((url) => url.replace(/#.*$/, '')) : [];
}

/** The folder of a model whose parts have these addresses. */
export function keyOf(urls: readonly string[]): string {
  return new Sha256()
    .update(new TextEncoder().encode(urls.join('\n')))
    .hex()
    .slice(0, 32);
}
