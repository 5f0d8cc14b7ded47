/**
 * Whether a message is one of the protocol's: asked on both ends, of everything that arrives. What a request asks for is checked
 * in `request.ts` and by the engine; here it is that nothing of a wrong kind reaches code that relies on its kind.
 */

import { isErrorRecord } from './errors.js';
import type { Calls, CallType, FromWorker, RequestEvent, ToWorker } from './protocol.js';

type Check = (value: unknown) => boolean;
type Checks<T> = { readonly [Name in keyof T]-?: Check };

/** A message that can be used, or why not and whom to answer, if anybody. */
export type Guarded<T> = { message: T } | { problem: string; id: number | undefined };

const isText: Check = (value) => typeof value === 'string';
const isFlag: Check = (value) => typeof value === 'boolean';
const isNumber: Check = (value) => typeof value === 'number' && !Number.isNaN(value);
const is =
  (expected: string): Check =>
  (value) =>
    value === expected;
const isNull: Check = (value) => value === null;
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
/** Ids of messages and requests, and counts. */
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isTokenId: Check = (value) => isCount(value) && value < 2 ** 32;
// `from` also visits the holes of a list, which `every` skips.
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && Array.from<unknown>(value).every(check);
const either =
  (...checks: Check[]): Check =>
  (value) =>
    checks.some((check) => check(value));
const optional = (check: Check): Check => either(check, (value) => value === undefined);
const shape =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isRecord(value) && Object.entries(checks).every(([name, check]) => check(value[name]));
/** Of another window or worker too, which `instanceof` would not know. */
const tagged =
  (...tags: string[]): Check =>
  (value) =>
    tags.includes(Object.prototype.toString.call(value).slice(8, -1));

const isPort: Check = (value) => typeof (value as Partial<MessagePort> | null)?.postMessage === 'function';
const isBlob = tagged('Blob', 'File');
/** One that was handed over to somebody else cannot be read. */
const isBuffer: Check = (value) => {
  try {
    return tagged('ArrayBuffer')(value) && new Uint8Array(value as ArrayBuffer).length >= 0;
  } catch {
    return false;
  }
};
const isMessage = shape({ role: isText });
const isInput = either(
  shape({ messages: listOf(isMessage) }),
  shape({ text: isText }),
  shape({ ids: listOf(isTokenId) }),
);
const isCacheOptions = shape({
  enabled: isFlag,
  priority: isNumber,
  pin: isFlag,
  salt: isText,
  breakpoints: listOf(isRecord),
});
const SCHEMA = { name: isText, json: isText, field: isText };
const isConstraint = either(
  shape({ kind: is('json_schema'), ...SCHEMA }),
  shape({ kind: is('regex'), pattern: isText, field: isText }),
  shape({ kind: is('lark'), grammar: isText, schemas: listOf(shape(SCHEMA)), field: isText }),
);
const isPolicy = either(
  shape({ kind: is('lru') }),
  shape({ kind: is('tail_aware'), ttftTargetMs: isCount, prefillTokensPerS: isCount, nextTurnTokens: isCount }),
);
const isTool = shape({
  type: is('function'),
  function: shape({
    name: isText,
    description: optional(isText),
    parameters: optional(isRecord),
    strict: optional(isFlag),
  }),
});
const isToolList: Check = (value) => listOf(isTool)(value) && (value as unknown[]).length > 0;
const CONVERSATION = { messages: listOf(isMessage), tools: optional(isToolList) };
/** Ids have no tools: what they say is in the ids. */
const isPrefix = either(shape(CONVERSATION), shape({ ids: listOf(isTokenId), tools: (value) => value === undefined }));
const isRequest = shape({
  input: isInput,
  numChoices: (value) => isCount(value) && value >= 1 && value <= 16,
  maxTokens: optional(isCount),
  sampling: isRecord,
  stop: listOf(isText),
  stopTokenIds: listOf(isTokenId),
  logitBias: listOf(listOf(isNumber)),
  allowedTokenIds: optional(listOf(isTokenId)),
  constraint: optional(isConstraint),
  tools: optional(shape({ list: isToolList, isRequired: isFlag, only: optional(isCount), isParallel: isFlag })),
  logprobs: optional(isCount),
  embeds: optional(isFlag),
  cache: isCacheOptions,
  priority: isNumber,
  reportsProgress: isFlag,
});
const isPart = either(
  shape({ kind: is('url'), urls: listOf(isText), sha256: optional(isText) }),
  shape({ kind: is('blob'), blob: isBlob, name: isText }),
);
const isSource = shape({
  id: isText,
  name: optional(isText),
  registry: optional(isText),
  parts: listOf(isPart),
  failure: optional(isErrorRecord),
  headers: (value) => isRecord(value) && Object.values(value).every(isText),
});
const isOptions = shape({ kv: isText, autotune: isFlag, precision: isText });
const isProgress = shape({ phase: isText, loadedBytes: isNumber, totalBytes: isNumber });
const isList = listOf(isRecord);

/** Of every call: its arguments, and its answer. */
const CALLS: { readonly [T in CallType]: { args: Checks<Calls[T]['args']>; result: Check } } = {
  load: {
    args: { source: isSource, options: isOptions, store: isFlag, group: either(isText, isNull) },
    result: shape({ id: isText, name: isText, adapter: isRecord }),
  },
  inspect: { args: { source: isSource }, result: isRecord },
  plan: { args: { source: isSource, options: isOptions }, result: isRecord },
  submit: { args: { request: isRequest, name: isText }, result: shape({ promptTokens: isCount }) },
  tokenize: { args: { text: isText, addSpecial: isFlag, parseSpecial: isFlag }, result: listOf(isTokenId) },
  detokenize: { args: { ids: listOf(isTokenId), skipSpecial: isFlag }, result: isText },
  applyTemplate: { args: { ...CONVERSATION, addGenerationPrompt: isFlag }, result: isText },
  metrics: { args: {}, result: isRecord },
  metricsText: { args: {}, result: isText },
  stepListen: { args: { isOn: isFlag }, result: isNull },
  logits: { args: { ids: listOf(isTokenId), positions: listOf(isTokenId) }, result: listOf(tagged('Float32Array')) },
  cacheStats: { args: {}, result: isRecord },
  cacheBlocks: { args: {}, result: isList },
  cachePrefixes: { args: {}, result: isList },
  cacheExplain: { args: { request: isRequest }, result: isRecord },
  cachePin: { args: { prefix: isPrefix, salt: isText }, result: isCount },
  cacheUnpin: { args: { prefix: isPrefix, salt: isText }, result: isCount },
  cacheEvict: { args: { prefix: isPrefix, salt: isText }, result: isCount },
  cachePolicy: { args: { policy: isPolicy }, result: isNull },
  cacheClear: { args: {}, result: isCount },
  cacheSave: { args: { prefix: isPrefix, salt: isText }, result: isBlob },
  cacheRestore: { args: { data: either(isBlob, isBuffer), cache: isCacheOptions }, result: isRecord },
  cacheListen: { args: { isOn: isFlag }, result: isNull },
  modelsList: { args: {}, result: isList },
  modelsFind: { args: { source: isSource }, result: either(isRecord, isNull) },
  modelsDelete: { args: { source: isSource }, result: isFlag },
  modelsDownload: { args: { source: isSource }, result: isRecord },
  unload: { args: {}, result: isNull },
};

type Other<T extends { type: string }> = Exclude<T, { type: CallType }>;
type ByType<T extends { type: string }> = {
  readonly [Type in T['type']]: Checks<Omit<Extract<T, { type: Type }>, 'type'>>;
};

const HELLO = { protocol: isNumber, version: isText };
const TO_WORKER: ByType<Other<ToWorker>> = {
  hello: { ...HELLO, life: either(isText, isNull) },
  cancel: { request: isCount },
  stepTarget: { ms: either(isNull, (ms) => isNumber(ms) && (ms as number) >= 0) },
  ping: {},
  connect: { via: either(isText, isPort) },
  leave: {},
};
const FROM_WORKER: ByType<FromWorker> = {
  hello: HELLO,
  // Their values are checked by whoever knows what was asked, and events one by one.
  result: { id: isCount, value: () => true },
  error: { id: isCount, error: isErrorRecord },
  progress: { progress: isProgress },
  events: { events: Array.isArray },
  cacheEvents: { events: isList },
  steps: { steps: isList, timeOrigin: isNumber },
  pong: {},
  clients: { num: isCount },
  crashed: { error: isErrorRecord },
};

const EVENTS: { readonly [Kind in RequestEvent['kind']]: Checks<Omit<Extract<RequestEvent, { kind: Kind }>, 'kind'>> } =
  {
    text: { request: isCount, choice: isCount, text: isText, logprobs: optional(isList) },
    call: { request: isCount, choice: isCount, index: isCount, id: isText, name: isText },
    arguments: { request: isCount, choice: isCount, index: isCount, text: isText },
    malformed: { request: isCount, choice: isCount, index: either(isCount, isNull), text: isText, error: isRecord },
    progress: { request: isCount, progress: isRecord },
    finished: {
      request: isCount,
      choice: isCount,
      reason: isText,
      usage: shape({ prompt_tokens: isCount, completion_tokens: isCount, prompt_tokens_details: isRecord }),
      timings: isRecord,
      cache: isRecord,
      embedding: optional(listOf(isNumber)),
    },
    failed: { request: isCount, error: isErrorRecord },
  };

function look<T>(data: unknown, tables: readonly Readonly<Record<string, Checks<object>>>[]): Guarded<T> {
  const id = isRecord(data) && isCount(data.id) ? data.id : undefined;
  if (!isRecord(data) || typeof data.type !== 'string') return { problem: 'a message without a type', id };
  const { type } = data;
  const table = tables.find((candidate) => Object.hasOwn(candidate, type));
  if (table === undefined) return { problem: `unknown message ${JSON.stringify(type.slice(0, 40))}`, id };
  const wrong = Object.entries<Check>(table[type] as Record<string, Check>).find(([name, check]) => !check(data[name]));
  return wrong === undefined ? { message: data as T } : { problem: `${type}: ${wrong[0]} is missing or malformed`, id };
}

const CALL_ARGS = Object.fromEntries(
  Object.entries(CALLS).map(([type, { args }]) => [type, { id: isCount, ...args }]),
) as Readonly<Record<string, Checks<object>>>;

/** A message to the worker. */
export function guardToWorker(data: unknown): Guarded<ToWorker> {
  return look(data, [CALL_ARGS, TO_WORKER]);
}

/** A message from the worker, but for the value of a `result` and the single events. */
export function guardFromWorker(data: unknown): Guarded<FromWorker> {
  return look(data, [FROM_WORKER]);
}

/** Whether a value can be the answer to a call. */
export function isResultOf(type: CallType, value: unknown): boolean {
  return CALLS[type].result(value);
}

/** Whether one of several events is whole. */
export function isRequestEvent(event: unknown): event is RequestEvent {
  if (!isRecord(event) || typeof event.kind !== 'string' || !Object.hasOwn(EVENTS, event.kind)) return false;
  const checks: Readonly<Record<string, Check>> = EVENTS[event.kind as RequestEvent['kind']];
  return Object.entries(checks).every(([name, check]) => check(event[name]));
}

/**
 * The buffers that are a value, in a list or in the fields of an object: worth handing over instead of copying; each at most
 * once, and only whole ones.
 */
export function buffersOf(value: unknown): ArrayBuffer[] {
  const isPlain = isRecord(value) && Object.getPrototypeOf(value) === Object.prototype;
  const buffers = (Array.isArray(value) ? value : isPlain ? Object.values(value) : [value]).map((part: unknown) => {
    if (part instanceof ArrayBuffer) return part;
    const isWhole = ArrayBuffer.isView(part) && part.byteLength === part.buffer.byteLength;
    return isWhole && part.buffer instanceof ArrayBuffer ? part.buffer : undefined;
  });
  return [...new Set(buffers)].filter((buffer) => buffer !== undefined);
}
