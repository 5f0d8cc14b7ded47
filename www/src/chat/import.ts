/**
 * Files to conversations. Whatever a file holds is checked: what is sound comes in under new ids, so that nothing that is
 * there is overwritten; what is not is left out and reported.
 */
import { type DocumentSettings, MAX_PASSAGES, MIN_PASSAGES, type SourceRecord } from '../documents/source';
import type { AnswerStats } from '../state/engine';
import { FORMAT, MARK, unescapeMarks, VERSION } from './export';
import {
  type Attachment,
  type ConversationRecord,
  DEFAULT_BUDGET,
  type MessageRecord,
  NO_SYSTEM,
  newConversation,
  newId,
  type PromptRecord,
  titleFrom,
} from './records';
import type { WholeConversation } from './store';

/** Longest file that is read. */
export const MAX_IMPORT_BYTES = 64 * 1024 * 1024;

export type ImportProblemCode =
  | 'not_json'
  | 'not_ours'
  | 'other_version'
  | 'no_marks'
  | 'not_a_conversation'
  | 'no_messages'
  | 'not_a_message'
  | 'lost_parent'
  | 'not_a_prompt'
  | 'too_large'
  | 'unreadable'
  | 'not_stored';

/** Something that was left out, and where. */
export interface ImportProblem {
  readonly code: ImportProblemCode;
  /** The file, and the place in it, such as `conversations[3].messages[2]`. */
  readonly place: string;
}

export interface Imported {
  readonly conversations: readonly WholeConversation[];
  readonly prompts: readonly PromptRecord[];
  readonly problems: readonly ImportProblem[];
}

const DAY_MS = 24 * 3600 * 1000;

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
/** A clock may be wrong, but not by more than a day: beyond it is no time, and beyond a few digits more no date that can be shown. */
const time = (value: unknown, now: number): number =>
  typeof value === 'number' && value > 0 && value < now + DAY_MS ? value : now;

/** Reads a file by its contents, whatever its name. */
export function fromFile(name: string, contents: string, now: number = Date.now()): Imported {
  return /^\s*[[{]/.test(contents) ? fromJson(name, contents, now) : fromMarkdown(name, contents, now);
}

export function fromJson(name: string, contents: string, now: number): Imported {
  const nothing = (code: ImportProblemCode): Imported => ({
    conversations: [],
    prompts: [],
    problems: [{ code, place: name }],
  });
  let file: unknown;
  try {
    file = JSON.parse(contents);
  } catch {
    return nothing('not_json');
  }
  if (!isFields(file) || file.format !== FORMAT) return nothing('not_ours');
  if (file.version !== VERSION) return nothing('other_version');
  const problems: ImportProblem[] = [];
  const conversations = list(file.conversations).flatMap((item, index) => {
    const place = `${name}: conversations[${index}]`;
    const read = readConversation(item, place, problems, now);
    return read ? [read] : [];
  });
  const prompts = list(file.prompts).flatMap((item, index) => {
    const prompt = readPrompt(item, now);
    if (!prompt) problems.push({ code: 'not_a_prompt', place: `${name}: prompts[${index}]` });
    return prompt ? [prompt] : [];
  });
  return { conversations, prompts, problems };
}

function readConversation(
  item: unknown,
  place: string,
  problems: ImportProblem[],
  now: number,
): WholeConversation | null {
  if (!isFields(item) || !Array.isArray(item.messages)) {
    problems.push({ code: 'not_a_conversation', place });
    return null;
  }
  const id = newId();
  const ids = new Map<string, string>();
  const sound = item.messages.filter((message: unknown, index: number): message is Fields => {
    const ok = isFields(message) && typeof message.id === 'string' && typeof message.text === 'string';
    const isMessage = ok && (message.role === 'user' || message.role === 'assistant') && !ids.has(message.id as string);
    if (isMessage) ids.set(message.id as string, newId());
    else problems.push({ code: 'not_a_message', place: `${place}.messages[${index}]` });
    return isMessage;
  });
  if (sound.length === 0) {
    problems.push({ code: 'no_messages', place });
    return null;
  }
  const messages = sound.map((message) => readMessage(message, id, ids, place, problems, now));
  const leaf = ids.get(text(item.leaf)) ?? messages.at(-1)?.id ?? null;
  return { conversation: readRecord(item, id, leaf, messages, now), messages: withoutCircles(messages) };
}

function readMessage(
  message: Fields,
  conversation: string,
  ids: ReadonlyMap<string, string>,
  place: string,
  problems: ImportProblem[],
  now: number,
): MessageRecord {
  const parent = ids.get(text(message.parent)) ?? null;
  if (parent === null && message.parent !== null && message.parent !== undefined) {
    problems.push({ code: 'lost_parent', place: `${place}: ${text(message.id)}` });
  }
  const attachments = list(message.attachments).flatMap((one): Attachment[] =>
    isFields(one) && typeof one.name === 'string' && typeof one.text === 'string'
      ? [{ name: one.name, text: one.text, bytes: new TextEncoder().encode(one.text).length }]
      : [],
  );
  return {
    id: ids.get(text(message.id)) ?? newId(),
    conversation,
    parent,
    role: message.role === 'user' ? 'user' : 'assistant',
    created: time(message.created, now),
    text: text(message.text),
    attachments,
    status: message.status === 'done' || message.role === 'user' ? 'done' : 'stopped',
    stats: readStats(message.stats),
    problem: null,
    ...(Array.isArray(message.sources) ? { sources: readSources(message.sources) } : {}),
  };
}

function readSources(items: readonly unknown[]): SourceRecord[] {
  return items.flatMap((one): SourceRecord[] =>
    isFields(one) && Number.isInteger(one.number) && Number(one.number) > 0 && typeof one.text === 'string'
      ? [
          {
            number: Number(one.number),
            title: text(one.title),
            file: text(one.file),
            path: list(one.path).map(text),
            page: Number.isInteger(one.page) ? Number(one.page) : null,
            text: one.text,
            passage: text(one.passage),
            ...(one.isAbove === true ? { isAbove: true } : {}),
          },
        ]
      : [],
  );
}

function readDocuments(item: unknown): { documents?: DocumentSettings } {
  if (!isFields(item)) return {};
  const asked = Number.isInteger(item.numPassages) ? Number(item.numPassages) : MIN_PASSAGES;
  const numPassages = Math.min(MAX_PASSAGES, Math.max(MIN_PASSAGES, asked));
  return { documents: { isOn: item.isOn === true, numPassages } };
}

function readStats(value: unknown): AnswerStats | null {
  if (!isFields(value)) return null;
  const number = (key: string): number => (typeof value[key] === 'number' ? (value[key] as number) : 0);
  const maybe = (key: string): number | null => (typeof value[key] === 'number' ? (value[key] as number) : null);
  return {
    promptTokens: number('promptTokens'),
    cachedTokens: number('cachedTokens'),
    answerTokens: number('answerTokens'),
    ttftMs: maybe('ttftMs'),
    decodeTokensPerS: maybe('decodeTokensPerS'),
    miss: null,
    cutBy: value.cutBy === 'max_tokens' || value.cutBy === 'context' ? value.cutBy : null,
  };
}

function readRecord(
  item: Fields,
  id: string,
  leaf: string | null,
  messages: readonly MessageRecord[],
  now: number,
): ConversationRecord {
  const system = isFields(item.system) ? item.system : {};
  const budget = isFields(item.budget) ? item.budget : {};
  const overflows = ['error', 'drop_oldest_turns', 'summarize'] as const;
  const { keepTurns, cutTo } = budget;
  return {
    ...newConversation(NO_SYSTEM, now),
    id,
    title: text(item.title) || titleFrom(messages[0]?.text ?? ''),
    isTitled: item.isTitled === true,
    created: time(item.created, now),
    updated: time(item.updated, now),
    leaf,
    system: {
      text: text(system.text),
      name: typeof system.name === 'string' ? system.name : null,
      version: typeof system.version === 'number' ? system.version : null,
    },
    ...readDocuments(item.documents),
    budget: {
      overflow: overflows.find((one) => one === budget.overflow) ?? DEFAULT_BUDGET.overflow,
      keepTurns: Number.isInteger(keepTurns) && Number(keepTurns) >= 1 ? Number(keepTurns) : DEFAULT_BUDGET.keepTurns,
      cutTo: typeof cutTo === 'number' && cutTo > 0 && cutTo <= 1 ? cutTo : DEFAULT_BUDGET.cutTo,
    },
  };
}

/** Where parents lead in a circle, the message that closes it begins a branch. Each is looked at once: files may be long. */
function withoutCircles(messages: readonly MessageRecord[]): MessageRecord[] {
  const parents = new Map(messages.map(({ id, parent }) => [id, parent]));
  const isSound = new Set<string>();
  for (const { id } of messages) {
    const seen = new Set<string>();
    let below = id;
    for (let at: string | null = id; at !== null && !isSound.has(at); at = parents.get(at) ?? null) {
      if (seen.has(at)) {
        parents.set(below, null);
        break;
      }
      seen.add(at);
      below = at;
    }
    for (const one of seen) isSound.add(one);
  }
  return messages.map((message) => ({ ...message, parent: parents.get(message.id) ?? null }));
}

function readPrompt(item: unknown, now: number): PromptRecord | null {
  if (!isFields(item) || text(item.name) === '') return null;
  const versions = list(item.versions).flatMap((one) =>
    isFields(one) && Number.isSafeInteger(one.version) && typeof one.text === 'string'
      ? [{ version: Number(one.version), text: one.text, created: time(one.created, now) }]
      : [],
  );
  versions.sort((a, b) => a.version - b.version);
  return versions.length === 0 ? null : { name: text(item.name), versions };
}

export function fromMarkdown(name: string, contents: string, now: number): Imported {
  const lines = contents.replace(/\r\n?/g, '\n').split('\n');
  const parts: { role: string; lines: string[] }[] = [];
  const head: string[] = [];
  for (const line of lines) {
    const role = MARK.exec(line)?.[1];
    if (role) parts.push({ role, lines: [] });
    else (parts.at(-1)?.lines ?? head).push(line);
  }
  if (parts.length === 0) return { conversations: [], prompts: [], problems: [{ code: 'no_marks', place: name }] };
  const record = newConversation(NO_SYSTEM, now);
  const messages: MessageRecord[] = [];
  let system = '';
  for (const part of parts) {
    const body = unescapeMarks(
      part.lines
        .join('\n')
        .trim()
        .replace(/^## .*\n*/, ''),
    );
    if (part.role === 'system') system = body;
    else
      messages.push(
        plainMessage(
          record.id,
          part.role === 'user' ? 'user' : 'assistant',
          body,
          messages.at(-1)?.id ?? null,
          now + messages.length,
        ),
      );
  }
  const title =
    head
      .find((line) => line.startsWith('# '))
      ?.slice(2)
      .trim() ?? '';
  const conversation: ConversationRecord = {
    ...record,
    title: title || titleFrom(messages[0]?.text ?? name),
    isTitled: title !== '',
    leaf: messages.at(-1)?.id ?? null,
    system: { text: system, name: null, version: null },
  };
  if (messages.length === 0)
    return { conversations: [], prompts: [], problems: [{ code: 'no_messages', place: name }] };
  return { conversations: [{ conversation, messages }], prompts: [], problems: [] };
}

function plainMessage(
  conversation: string,
  role: 'user' | 'assistant',
  body: string,
  parent: string | null,
  created: number,
): MessageRecord {
  return {
    id: newId(),
    conversation,
    parent,
    role,
    created,
    text: body,
    attachments: [],
    status: 'done',
    stats: null,
    problem: null,
  };
}
