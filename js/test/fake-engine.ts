/** The stand-in for the WebAssembly module: see fake.ts. */

import type { CacheEvent, CacheExplanation, EvictionPolicy, RestoredPrefix } from '../src/cache-types.js';
import type { GrammarModule } from '../src/grammars.js';
import type { EngineCacheOptions, EnginePrefix, EngineRequest, RequestEvent } from '../src/protocol.js';
import type { TokenLogprob, TopLogprob } from '../src/types.js';
import type { ByteSource, WasmEngine, WasmModule, WasmStep } from '../src/wasm.js';
import type { FakeOptions } from './fake.js';

interface Running {
  request: EngineRequest;
  prefillLeft: number;
  /** Letters sent of each choice that has not ended. */
  sent: Map<number, number>;
}

/** A letter is a token; the others are the letters behind it. */
function logprobsOf(letter: string, num: number | undefined): TokenLogprob[] | undefined {
  if (num === undefined) return undefined;
  const token = (shift: number): TopLogprob => {
    const code = letter.charCodeAt(0) + shift;
    return { token: String.fromCharCode(code), logprob: 0 - shift, bytes: [code] };
  };
  return [{ ...token(0), top_logprobs: Array.from({ length: num }, (_, index) => token(index)) }];
}

/** See the file's comment. */
export class FakeEngine implements WasmEngine {
  readonly #answer: string;
  readonly #prefillSteps: number;
  readonly #script: FakeOptions['script'];
  readonly #overrides: Partial<WasmEngine>;
  readonly running = new Map<number, Running>();
  readonly cancelled: number[] = [];
  /** Events of the cache that were not fetched yet. */
  readonly cacheLog: CacheEvent[] = [];
  /** Every call that steers the cache. */
  readonly cacheCalls: unknown[][] = [];
  /** The steps that were traced and not fetched yet. */
  readonly trace: WasmStep[] = [];
  /** The modules for constraints that it was given. */
  readonly grammars: GrammarModule[] = [];
  isTracing = false;
  stepTarget: number | undefined;
  numSteps = 0;
  numLoads = 0;
  /** How often all memory of the GPU was freed. */
  numReleases = 0;
  isFree = false;
  #isStepping = false;

  constructor(options: FakeOptions) {
    this.#answer = options.answer ?? 'Hello';
    this.#prefillSteps = options.prefillSteps ?? 1;
    this.#script = options.script;
    this.#overrides = options.engine ?? {};
  }

  module(): WasmModule {
    const source = async (reader: ByteSource): Promise<number> => reader.partLength(0);
    return {
      loadEngine: async (reader, _options, onProgress) => {
        onProgress('header', 0, 0);
        this.numLoads += 1;
        this.isFree = false;
        const length = await source(reader);
        await reader.read(0, 0, Math.min(length, 64));
        onProgress('compile', 0, length);
        onProgress('weights', length, length);
        onProgress('ready', length, length);
        return Object.assign(this, this.#overrides);
      },
      inspect: async (reader) => ({
        ...this.info(),
        fileBytes: await source(reader),
        isSupported: true,
        metadata: {},
        tensors: [],
      }),
      plan: async (reader, options) => ({
        weightsBytes: await source(reader),
        stepWeightsBytes: 1,
        kvBytesPerToken: 2,
        kvBytes: 2 * (options.contextLength ?? 100),
        scratchBytes: 1,
        totalBytes: 0,
        contextLength: options.contextLength ?? 100,
        trainedContextLength: 100,
        kv: options.kv,
      }),
    };
  }

  info(): ReturnType<WasmEngine['info']> {
    return {
      name: 'Fake Model',
      architecture: 'llama',
      quantisation: 'Q4_1',
      numParameters: 1,
      contextLength: 100,
      trainedContextLength: 100,
      vocabSize: 256,
      kv: 'f16',
      gpuBytes: 1,
      memory: {
        weightsBytes: 1,
        stepWeightsBytes: 1,
        kvBytesPerToken: 1,
        kvBytes: 1,
        scratchBytes: 1,
        totalBytes: 1,
        contextLength: 100,
        trainedContextLength: 100,
        kv: 'f16',
      },
      hasChatTemplate: true,
      tuning: { source: 'table', fewRows: 'fake', manyRows: 'fake', tuneMs: 0 },
    };
  }

  useGrammars(module: GrammarModule): void {
    this.#mayCall();
    this.grammars.push(module);
  }

  measuredTuning(): ReturnType<WasmEngine['measuredTuning']> {
    return null;
  }

  submit(id: number, request: EngineRequest, _arrivedMs: number): number {
    this.#mayCall();
    if (request.constraint !== undefined && this.grammars.length === 0) throw new Error('nothing compiles constraints');
    const length = JSON.stringify(request.input).length;
    if (length > 1000)
      throw { code: 'context_too_long', message: `context too long: ${length} tokens asked, 1000 allowed` };
    const sent = new Map(Array.from({ length: request.numChoices }, (_, choice) => [choice, 0]));
    this.running.set(id, { request, prefillLeft: this.#prefillSteps, sent });
    return length;
  }

  cancel(id: number): void {
    this.#mayCall();
    this.running.delete(id);
    this.cancelled.push(id);
  }

  hasWork(): boolean {
    return this.running.size > 0;
  }

  async step(): Promise<RequestEvent[]> {
    this.#mayCall();
    this.#isStepping = true;
    this.numSteps += 1;
    await new Promise((resolve) => setTimeout(resolve, 1));
    this.#isStepping = false;
    const events: RequestEvent[] = [];
    const parts: WasmStep['parts'] = [];
    for (const [request, running] of this.running) {
      parts.push({ request, choice: 0, start: 0, end: 1, numPrompt: 3, samples: running.prefillLeft === 0 });
      if (running.prefillLeft > 0) events.push(...this.#prefill(request, running));
      else for (const choice of [...running.sent.keys()]) events.push(this.#decode(request, choice, running));
      if (running.sent.size === 0) this.running.delete(request);
    }
    if (this.isTracing) {
      this.trace.push({
        startMs: this.numSteps,
        endMs: this.numSteps + 1,
        gpuMs: null,
        encodeMs: null,
        numWaiting: 0,
        parts,
        preempted: [],
      });
    }
    return events;
  }

  #prefill(request: number, running: Running): RequestEvent[] {
    running.prefillLeft -= 1;
    if (!running.request.reportsProgress) return [];
    const computed = this.#prefillSteps - running.prefillLeft;
    const prefill = { state: 'prefill', total: this.#prefillSteps, cached: 0, computed } as const;
    const waiting = { state: 'waiting', position: 0, estimated_wait_ms: null } as const;
    const events: RequestEvent[] = [{ kind: 'progress', request, progress: prefill }];
    return computed === 1 ? [{ kind: 'progress', request, progress: waiting }, ...events] : events;
  }

  #decode(request: number, choice: number, running: Running): RequestEvent {
    const numSent = running.sent.get(choice) ?? 0;
    const answer = choice === 0 ? this.#answer : `${this.#answer}${choice}`;
    const isSilent = running.request.prefillOnly || running.request.embeds;
    const script = typeof this.#script === 'function' ? this.#script(running.request) : this.#script;
    const scripted = script?.events[numSent];
    if (scripted !== undefined) {
      running.sent.set(choice, numSent + 1);
      return { ...scripted, request, choice };
    }
    const letter = isSilent || script !== undefined ? undefined : answer[numSent];
    const isFull = numSent === running.request.maxTokens;
    if (letter !== undefined && !isFull) {
      running.sent.set(choice, numSent + 1);
      const logprobs = logprobsOf(letter, running.request.logprobs);
      return { kind: 'text', request, choice, text: letter, ...(logprobs === undefined ? {} : { logprobs }) };
    }
    running.sent.delete(choice);
    const cached_tokens = 2 + Math.min(choice, 1);
    const usage = {
      prompt_tokens: 3,
      completion_tokens: numSent,
      total_tokens: 3 + numSent,
      prompt_tokens_details: { cached_tokens },
    };
    const cache = { read_tokens: cached_tokens, written_tokens: 1, miss: null };
    this.cacheLog.push({ kind: 'stored', position: 2, numTokens: 1 });
    const timings = { queue_ms: 1, ttft_ms: 2, tpot_ms: 3, prefill_tokens_per_s: 4, decode_tokens_per_s: 5 };
    const reason = script?.reason ?? (isFull ? 'length' : 'stop');
    // 0.6 and 0.8, as the engine rounds them.
    const embedding = running.request.embeds ? { embedding: [Math.fround(0.6), Math.fround(0.8)] } : {};
    return { kind: 'finished', request, choice, reason, usage, timings, cache, ...embedding };
  }

  tokenize(text: string, addSpecial: boolean): Uint32Array {
    this.#mayCall();
    const codes = Array.from(text, (letter) => letter.charCodeAt(0));
    return Uint32Array.from(addSpecial ? [1, ...codes] : codes);
  }

  detokenize(ids: Uint32Array): string {
    this.#mayCall();
    return String.fromCharCode(...ids);
  }

  cacheStats(): ReturnType<WasmEngine['cacheStats']> {
    this.#mayCall();
    const names = ['numNodes', 'numBlocks', 'numPinned', 'numLookups', 'numHits', 'askedTokens', 'readTokens'] as const;
    const others = ['writtenTokens', 'numDuplicates', 'numEvicted', 'numExpired', 'numDropped', 'numRestored'] as const;
    const entries = [...names, ...others].map((name, index) => [name, index]);
    return { ...Object.fromEntries(entries), groups: [], numForgottenGroups: 0 } as ReturnType<
      WasmEngine['cacheStats']
    >;
  }

  cacheBlocks(): ReturnType<WasmEngine['cacheBlocks']> {
    this.#mayCall();
    const [request = -1] = this.running.keys();
    return [{ group: 0, block: 7, numHolders: 1, holders: [{ request, choice: 0 }], cached: null }];
  }

  cachePrefixes(): ReturnType<WasmEngine['cachePrefixes']> {
    this.#mayCall();
    return [];
  }

  cacheExplain(request: EngineRequest): CacheExplanation {
    this.#steer('explain', 0, request.input);
    return { prompt_tokens: 3, cached_tokens: 2, miss: null, doctor: null };
  }

  cachePin(salt: string, prefix: EnginePrefix): number {
    return this.#steer('pin', 16, salt, prefix);
  }

  cacheUnpin(salt: string, prefix: EnginePrefix): number {
    return this.#steer('unpin', 32, salt, prefix);
  }

  cacheEvict(salt: string, prefix: EnginePrefix): number {
    this.cacheLog.push({ kind: 'evicted', position: 0, numTokens: 16, group: 0, reason: 'asked' });
    return this.#steer('evict', 1, salt, prefix);
  }

  setCachePolicy(policy: EvictionPolicy): void {
    this.#steer('policy', 0, policy);
  }

  cacheClear(): number {
    return this.#steer('clear', 5);
  }

  async cacheSave(salt: string, prefix: EnginePrefix, sink: (bytes: Uint8Array) => void): Promise<number> {
    const numTokens = this.#steer('save', 32, salt, prefix);
    sink(Uint8Array.of(1, 2));
    await Promise.resolve();
    sink(Uint8Array.of(3));
    return numTokens;
  }

  async cacheRestore(source: ByteSource, options: EngineCacheOptions): Promise<RestoredPrefix> {
    const length = await source.partLength(0);
    const bytes = [...(await source.read(0, 0, length))];
    if (bytes[0] !== 1) throw { code: 'bad_request', message: 'this is no saved prefix' };
    this.cacheLog.push({ kind: 'restored', position: 0, numTokens: 32, group: 0 });
    return { tokens: 32, blocks: this.#steer('restore', 2, bytes, options) };
  }

  cacheEvents(): CacheEvent[] {
    this.#mayCall();
    return this.cacheLog.splice(0);
  }

  #steer(name: string, result: number, ...args: unknown[]): number {
    this.#mayCall();
    this.cacheCalls.push([name, ...args]);
    return result;
  }

  async logits(ids: Uint32Array, positions: Uint32Array): Promise<Float32Array[]> {
    this.#mayCall();
    return Array.from(positions, (position) => Float32Array.of(position, ids[position] ?? Number.NaN));
  }

  applyTemplate(messages: unknown, tools: unknown, addGenerationPrompt: boolean): string {
    this.#mayCall();
    return JSON.stringify({ messages, tools, addGenerationPrompt });
  }

  setStepTarget(ms: number | undefined): void {
    this.#mayCall();
    this.stepTarget = ms;
  }

  setTracing(isOn: boolean): void {
    this.#mayCall();
    this.isTracing = isOn;
  }

  takeTrace(): WasmStep[] {
    this.#mayCall();
    return this.trace.splice(0);
  }

  metrics(): ReturnType<WasmEngine['metrics']> {
    this.#mayCall();
    const none = { count: 0, sum: 0, p50: null, p90: null, p95: null, p99: null, max: null };
    const kv = [{ numBlocks: 8, used: this.running.size, peak: 8 }];
    const tokens = {
      promptTokens: 0,
      cachedTokens: 0,
      generatedTokens: 0,
      overshotTokens: 0,
      computedTokens: 0,
      prefixHitRate: null,
    };
    const ends = { numCancelled: 0, numRejected: 0, numExpired: 0, numFailed: 0, numOutOfMemory: 0 };
    return {
      ...{ numWaiting: 0, numRunning: this.running.size, numSteps: this.numSteps, numStepsAhead: 0, numPreemptions: 0 },
      ...{ kv, kvUsage: this.running.size / 8, wasmMemoryBytes: 65536 },
      ...{ ...tokens, ...ends, numFinished: { stop: 0, length: 0 } },
      ...{ ttftMs: none, tpotMs: none, interTokenMs: none, queueMs: none, e2eMs: none },
      ...{ stepMs: none, gpuStepMs: none, encodeMs: none, stepTokens: none, stepSequences: none },
    };
  }

  metricsText(modelName: string): string {
    this.#mayCall();
    return `pagewise:num_requests_running{model_name="${modelName}"} ${this.running.size}\n`;
  }

  free(): void {
    this.#mayCall();
    this.isFree = true;
  }

  #mayCall(): void {
    if (this.#isStepping) throw new Error('recursive use of an object: a step is pending');
    if (this.isFree) throw new Error('null pointer passed to rust');
  }
}
