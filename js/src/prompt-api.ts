/**
 * The Prompt API of the web (`LanguageModel`) on a Pagewise engine: for pages that are written for it, in browsers that have
 * none or another model.
 *
 * ```ts
 * import { createLanguageModel } from 'pagewise/prompt-api';
 *
 * const LanguageModel = createLanguageModel(engine);
 * const session = await LanguageModel.create({ initialPrompts: [{ role: 'system', content: 'Be brief.' }] });
 * console.log(await session.prompt('Hello!'));
 * ```
 *
 * @module
 */

import { unlessAborted } from './abort.js';
import type { Engine } from './engine.js';
import { PagewiseError } from './errors.js';
import { bad, isObject, show } from './fields.js';
import { countTokens, warm } from './prompt-context.js';
import { type LanguageModelMessage, notSupported, quotaExceeded, toException, toMessages } from './prompt-input.js';
import { LanguageModelSession, type Sampling } from './prompt-session.js';
import { type LanguageModelTool, type SessionTools, toTools } from './prompt-tools.js';
import type { LoadOptions } from './types.js';

export type {
  LanguageModelMessage,
  LanguageModelMessageContent,
  LanguageModelPrompt,
  LanguageModelPromptOptions,
} from './prompt-input.js';
export { LanguageModelSession } from './prompt-session.js';
export type { LanguageModelTool } from './prompt-tools.js';

/** Whether a session can be had: at once, after a download that is under way or that has to be begun, or never. */
export type Availability = 'available' | 'downloading' | 'downloadable' | 'unavailable';

/** A kind of content that a session will meet. */
export interface LanguageModelExpected {
  /** Only `text` is there, and with tools `tool-call` and `tool-response`. */
  type: string;
  /** Tags of languages; they have to be well-formed, and no more is known of a model. */
  languages?: readonly string[];
}

/** Options of `create()` that decide whether it is possible. */
export interface LanguageModelCreateCoreOptions {
  /** Most probable tokens that are drawn among; over the maximum means the maximum. */
  topK?: number;
  /** 0 to 2; over the maximum means the maximum. */
  temperature?: number;
  /** A temperature by name; {@link temperature} comes first. */
  samplingMode?: 'most-predictable' | 'predictable' | 'balanced' | 'creative' | 'most-creative';
  /** What it will be given. */
  expectedInputs?: readonly LanguageModelExpected[];
  /** What it has to answer with. */
  expectedOutputs?: readonly LanguageModelExpected[];
  /**
   * Functions that the model may call. They are called for it, several at the same time, until it answers: up to 16 times for a
   * prompt. A model whose template takes no tools is told of them in the system prompt, in words.
   */
  tools?: readonly LanguageModelTool[];
}

/** The target of a load's events: `loaded` goes from 0 to 1, `total` is 1. */
export interface LanguageModelMonitor extends EventTarget {
  addEventListener(
    type: 'downloadprogress',
    listener: (event: Event & { readonly loaded: number; readonly total: number }) => void,
    options?: AddEventListenerOptions | boolean,
  ): void;
  addEventListener(...args: Parameters<EventTarget['addEventListener']>): void;
}

/** Options of `create()`. */
export interface LanguageModelCreateOptions extends LanguageModelCreateCoreOptions {
  /** Ends it, and the session too. */
  signal?: AbortSignal;
  /** Is given a target of `downloadprogress` events, whose `loaded` goes from 0 to 1. */
  monitor?: (monitor: LanguageModelMonitor) => void;
  /** What the conversation begins with. A system message is never left out when it becomes too long. */
  initialPrompts?: readonly LanguageModelMessage[];
}

/** What sampling can be set to. */
export interface LanguageModelParams {
  /** All tokens. */
  defaultTopK: number;
  /** All tokens. */
  maxTopK: number;
  /** 1, as everywhere in Pagewise. */
  defaultTemperature: number;
  /** 2. */
  maxTemperature: number;
}

/** What {@link createLanguageModel} makes: the Prompt API's `LanguageModel`. */
export interface LanguageModelStatic {
  /** Begins a session; loads the model where that has not been done. */
  create(options?: LanguageModelCreateOptions): Promise<LanguageModelSession>;
  /** Whether and how a session can be had. */
  availability(options?: LanguageModelCreateCoreOptions): Promise<Availability>;
  /** What sampling can be set to; null while no model is loaded. */
  params(): Promise<LanguageModelParams | null>;
}

/** An engine, or how to load one when the first session is made. */
export type LanguageModelEngine = Engine | ((options: Required<Pick<LoadOptions, 'onProgress'>>) => Promise<Engine>);

const MAX_TEMPERATURE = 2;
const TEMPERATURES: Readonly<Record<string, number>> = {
  'most-predictable': 0,
  predictable: 0.5,
  balanced: 1,
  creative: 1.25,
  'most-creative': 1.5,
};
/** Codes that stay: the device or the file is not made for it. */
const HOPELESS: readonly string[] = ['no_webgpu', 'unsupported_model', 'out_of_memory'];

/** The Prompt API on an engine. Nothing global is touched; see {@link installLanguageModel}. */
export function createLanguageModel(engine: LanguageModelEngine): LanguageModelStatic {
  const source = new EngineSource(engine);
  return {
    availability: (options = {}) => availability(source, options),
    params: async () => (source.engine === undefined ? null : paramsOf(source.engine)),
    create: (options = {}) => create(source, options),
  };
}

/**
 * Makes it `globalThis.LanguageModel`, where the browser has none (or in place of the browser's, with `replace: true`).
 * Returns a function that takes it back.
 */
export function installLanguageModel(engine: LanguageModelEngine, { replace = false } = {}): () => void {
  const before = Object.getOwnPropertyDescriptor(globalThis, 'LanguageModel');
  if (before !== undefined && !replace) return () => undefined;
  const value = createLanguageModel(engine);
  Object.defineProperty(globalThis, 'LanguageModel', { value, configurable: true, writable: true });
  return () => {
    if (Reflect.get(globalThis, 'LanguageModel') !== value) return;
    if (before === undefined) Reflect.deleteProperty(globalThis, 'LanguageModel');
    else Object.defineProperty(globalThis, 'LanguageModel', before);
  };
}

async function availability(source: EngineSource, options: LanguageModelCreateCoreOptions): Promise<Availability> {
  try {
    const tools = toTools(options.tools);
    if (!canServe(options, tools)) return 'unavailable';
    if (source.engine !== undefined && tools !== undefined) await tryTools(source.engine, tools);
    return source.availability();
  } catch (error) {
    // What is malformed is thrown, as `create` does; what is not supported is an answer.
    if (error instanceof PagewiseError || (error as Error).name === 'NotSupportedError') return 'unavailable';
    throw error;
  }
}

async function create(source: EngineSource, options: LanguageModelCreateOptions): Promise<LanguageModelSession> {
  const { signal = new AbortController().signal, monitor, initialPrompts } = options;
  signal.throwIfAborted();
  const tools = toTools(options.tools);
  if (!canServe(options, tools))
    throw notSupported('text is all that this model takes and gives, beside calls of tools');
  const initial = initialPrompts === undefined ? [] : toMessages(initialPrompts, true);
  const target = new EventTarget();
  monitor?.(target as LanguageModelMonitor);
  try {
    const engine = await unlessAborted(source.load(target), signal);
    if (tools !== undefined) await tryTools(engine, tools);
    const sampling = samplingOf(options, engine);
    const usage = await measure(engine, initial, tools);
    const session = new LanguageModelSession({ engine, sampling, tools, messages: initial, usage });
    if (initial.length > 0) await warm(engine, initial, tools, signal);
    signal.addEventListener('abort', () => session.destroy(), { once: true });
    signal.throwIfAborted();
    return session;
  } catch (error) {
    throw toException(error, signal);
  }
}

/** Rejects where the model cannot be told of them. */
async function tryTools(engine: Engine, { list }: SessionTools): Promise<void> {
  await engine.applyTemplate([{ role: 'user', content: '' }], { tools: list });
}

async function measure(
  engine: Engine,
  initial: ReturnType<typeof toMessages>,
  tools: SessionTools | undefined,
): Promise<number> {
  const tokens = await countTokens(engine, initial, tools);
  if (tokens >= engine.info.contextLength) throw quotaExceeded(tokens, engine.info.contextLength);
  return tokens;
}

/** The engine, loaded once for all sessions. */
class EngineSource {
  readonly #load: (options: Required<Pick<LoadOptions, 'onProgress'>>) => Promise<Engine>;
  readonly #monitors = new Set<EventTarget>();
  #engine: Engine | undefined;
  #loading: Promise<Engine> | undefined;
  /** Whether another attempt to load would be no use. */
  #isHopeless = false;

  constructor(given: LanguageModelEngine) {
    if (typeof given === 'function') {
      this.#load = given;
      return;
    }
    if (!isObject(given)) throw bad(`an engine, or a function that loads one, is needed, ${show(given)} given`);
    this.#engine = given;
    this.#isHopeless = true;
    this.#load = () => Promise.reject(given.ended);
  }

  /** The engine while it can be used. */
  get engine(): Engine | undefined {
    return this.#engine?.ended === null ? this.#engine : undefined;
  }

  availability(): Availability {
    if (this.engine !== undefined) return 'available';
    if (this.#loading !== undefined) return 'downloading';
    return this.#isHopeless ? 'unavailable' : 'downloadable';
  }

  async load(monitor: EventTarget): Promise<Engine> {
    if (this.engine !== undefined) {
      // The specification has both ends reported even where nothing is loaded.
      tell(monitor, 0);
      tell(monitor, 1);
      return this.engine;
    }
    this.#monitors.add(monitor);
    this.#loading ??= this.#start();
    return this.#loading;
  }

  async #start(): Promise<Engine> {
    let last = -1;
    const tellAll = (loaded: number): void => {
      if (loaded <= last) return;
      last = loaded;
      for (const monitor of this.#monitors) tell(monitor, loaded);
    };
    tellAll(0);
    try {
      const engine = await this.#load({
        onProgress: ({ loadedBytes, totalBytes }) => {
          if (totalBytes > 0 && loadedBytes < totalBytes) tellAll(loadedBytes / totalBytes);
        },
      });
      tellAll(1);
      this.#engine = engine;
      return engine;
    } catch (error) {
      this.#isHopeless = error instanceof PagewiseError && HOPELESS.includes(error.code);
      throw error;
    } finally {
      this.#loading = undefined;
      this.#monitors.clear();
    }
  }
}

/** A `downloadprogress` event; its class is not everywhere, its fields are what counts. */
function tell(monitor: EventTarget, loaded: number): void {
  const fields = { lengthComputable: true, loaded, total: 1 };
  monitor.dispatchEvent(Object.assign(new Event('downloadprogress'), fields));
}

function canServe(
  { expectedInputs = [], expectedOutputs = [] }: LanguageModelCreateCoreOptions,
  tools: SessionTools | undefined,
): boolean {
  for (const { languages = [] } of [...expectedInputs, ...expectedOutputs]) Intl.getCanonicalLocales([...languages]);
  const known = tools === undefined ? ['text'] : ['text', 'tool-call', 'tool-response'];
  return [...expectedInputs, ...expectedOutputs].every(({ type }) => known.includes(type));
}

function paramsOf({ info }: Engine): LanguageModelParams {
  const { vocabSize } = info;
  return { defaultTopK: vocabSize, maxTopK: vocabSize, defaultTemperature: 1, maxTemperature: MAX_TEMPERATURE };
}

function samplingOf(
  { topK, temperature, samplingMode = 'balanced' }: LanguageModelCreateCoreOptions,
  engine: Engine,
): Sampling {
  const named = TEMPERATURES[samplingMode];
  if (named === undefined) throw new TypeError(`samplingMode: ${Object.keys(TEMPERATURES).join(', ')} are there`);
  if (topK !== undefined && !(topK >= 1)) throw new RangeError(`topK: at least 1 is needed, ${topK} given`);
  if (temperature !== undefined && !(temperature >= 0))
    throw new RangeError(`temperature: at least 0 is needed, ${temperature} given`);
  const { maxTopK, defaultTopK } = paramsOf(engine);
  return {
    topK: Math.min(maxTopK, Math.floor(topK ?? defaultTopK)),
    temperature: Math.min(MAX_TEMPERATURE, temperature ?? named),
    samplingMode,
  };
}
