/**
 * The engine: a model in a worker of its own.
 */

import { PrefixCache } from './cache.js';
import { ChatCompletions } from './chat.js';
import type { WorkerClient } from './client.js';
import { Completions } from './completions.js';
import { Embeddings } from './embeddings.js';
import { PagewiseError } from './errors.js';
import { bad, show } from './fields.js';
import { checkEngineOptions, checkStepTargets, followVisibility } from './load-options.js';
import { Models } from './models.js';
import { checkOptions, type OptionKinds } from './options.js';
import { shareEnvironment } from './share-environment.js';
import { checkShare } from './share-options.js';
import { loadSharing, type Sharing, startSharing } from './sharing.js';
import { checkRendered } from './tool-request.js';
import type {
  ChatRequestMessage,
  DetokenizeOptions,
  EngineInfo,
  EngineMetrics,
  EngineSharing,
  LoadOptions,
  LogitsOptions,
  MemoryPlan,
  ModelDescription,
  ModelSource,
  PlanOptions,
  SourceOptions,
  StepTrace,
  TemplateOptions,
  TokenizeOptions,
} from './types.js';
import { askToPersist, inWorker, needBrowser, resolveForWorker, SOURCE_OPTIONS, withWorker } from './with-worker.js';

const PLAN_OPTIONS: OptionKinds<PlanOptions> = {
  ...SOURCE_OPTIONS,
  contextLength: 'any',
  kv: 'any',
  maxGpuBytes: 'any',
  maxRunning: 'any',
};
const LOAD_OPTIONS: OptionKinds<LoadOptions> = {
  ...PLAN_OPTIONS,
  maxQueued: 'any',
  maxStepsAhead: 'any',
  maxStepTokens: 'any',
  batching: 'any',
  chunkedPrefill: 'flag',
  autotune: 'flag',
  precision: 'any',
  toolFormat: 'any',
  stepTargetMs: 'any',
  store: 'flag',
  share: 'any',
  onProgress: 'function',
};

/** A loaded model. Make one with {@link Engine.load}. */
export class Engine {
  /** Models in the browser's storage: downloaded, listed, removed. */
  static readonly models = new Models();
  readonly #client: WorkerClient;
  readonly #sharing: Sharing | undefined;
  /** What was loaded, and on which GPU. */
  readonly info: EngineInfo;
  /** Chat requests, in OpenAI's shape. */
  readonly chat: { readonly completions: ChatCompletions };
  /** Requests to continue a text, in OpenAI's shape. */
  readonly completions: Completions;
  /** Requests to embed texts, in OpenAI's shape. */
  readonly embeddings: Embeddings;
  /** What is kept of earlier prompts and answers. */
  readonly cache: PrefixCache;

  private constructor(client: WorkerClient, info: EngineInfo, sharing?: Sharing) {
    this.#client = client;
    this.#sharing = sharing;
    this.info = info;
    this.chat = { completions: new ChatCompletions(client, info) };
    this.completions = new Completions(client, info);
    this.embeddings = new Embeddings(client, info);
    this.cache = new PrefixCache(client, info);
  }

  /**
   * Loads a model into GPU memory: reads the header, checks that the model is supported and fits, streams the weights
   * tensor by tensor, compiles the kernels.
   *
   * Rejects with a {@link PagewiseError}: `no_webgpu`, `unsupported_model`, `corrupt_model`, `out_of_memory` (before any
   * weight is read), `network`, `cancelled`, `bad_request`; with `store` also `storage_full`. Whatever had been loaded is freed.
   *
   * With `share`, an engine that another tab has loaded is used, and nothing is loaded.
   */
  static async load(source: ModelSource, options?: LoadOptions): Promise<Engine> {
    const checked = checkOptions('load', options, LOAD_OPTIONS);
    const { onProgress, store = false } = checked;
    const targets = checkStepTargets(checked.stepTargetMs);
    const engineOptions = checkEngineOptions(checked);
    const share = checkShare(checked.share);
    needBrowser(checked);
    const environment = share && shareEnvironment();
    const spec = await resolveForWorker(source, checked);
    if (store) askToPersist();
    const load = { source: spec, options: engineOptions, store, group: null };
    if (share !== undefined && environment !== undefined) {
      const sharing = startSharing(share, environment, checked, load);
      sharing.client.atEnd(followVisibility(targets, (ms) => sharing.client.setStepTarget(ms)));
      const info = await loadSharing(sharing, checked.signal);
      sharing.client.onProgress = undefined;
      return new Engine(sharing.client, info, sharing);
    }
    return withWorker(checked, async (client) => {
      client.onProgress = onProgress;
      const info = await client.call('load', load);
      client.onProgress = undefined;
      client.atEnd(followVisibility(targets, (ms) => client.setStepTarget(ms)));
      return new Engine(client, info);
    });
  }

  /** Describes a file from its header alone; needs no GPU. */
  static async inspect(source: ModelSource, options?: SourceOptions): Promise<ModelDescription> {
    const checked = checkOptions('inspect', options, SOURCE_OPTIONS);
    const spec = await resolveForWorker(source, checked);
    return inWorker(checked, (client) => client.call('inspect', { source: spec }));
  }

  /**
   * Says from a file's header alone how much GPU memory it needs and what context fits.
   *
   * Rejects with `out_of_memory` when it cannot fit, `unsupported_model` when it cannot run.
   */
  static async plan(source: ModelSource, options?: PlanOptions): Promise<MemoryPlan> {
    const checked = checkOptions('plan', options, PLAN_OPTIONS);
    const engineOptions = checkEngineOptions(checked);
    const spec = await resolveForWorker(source, checked);
    return inWorker(checked, (client) => client.call('plan', { source: spec, options: engineOptions }));
  }

  /** Why the engine can no longer be used: it was unloaded, or its worker has ended. Null while it can. */
  get ended(): PagewiseError | null {
    return this.#client.closed ?? null;
  }

  /** How this tab shares the engine with others; null when it has it to itself. */
  get sharing(): EngineSharing | null {
    return this.#sharing?.state ?? null;
  }

  /**
   * Calls back whenever another tab or worker has the shared engine: when this tab has become the leader, or follows another
   * one. Answers that were cut off have failed with `leader_lost` by then. Returns a function that ends it.
   */
  onLeaderChange(callback: (sharing: EngineSharing) => void): () => void {
    if (typeof callback !== 'function') throw bad(`onLeaderChange: a function is needed, ${show(callback)} given`);
    return this.#sharing?.onLeaderChange(callback) ?? (() => undefined);
  }

  /** Turns text into token ids. */
  async tokenize(text: string, options?: TokenizeOptions): Promise<number[]> {
    if (typeof text !== 'string') throw new PagewiseError('bad_request', 'tokenize: a string is needed');
    const kinds = { addSpecial: 'flag', parseSpecial: 'flag' } as const;
    const { addSpecial = false, parseSpecial = false } = checkOptions('tokenize', options, kinds);
    return this.#client.call('tokenize', { text, addSpecial, parseSpecial });
  }

  /** Turns token ids into text. */
  async detokenize(ids: readonly number[], options?: DetokenizeOptions): Promise<string> {
    if (!isListOfIds(ids)) throw new PagewiseError('bad_request', 'detokenize: a list of token ids is needed');
    const { skipSpecial = true } = checkOptions('detokenize', options, { skipSpecial: 'flag' });
    return this.#client.call('detokenize', { ids: [...ids], skipSpecial });
  }

  /**
   * The model's scores (logits) for the token after each of `options.positions`: one array of the vocabulary's length per
   * position. For looking into the model; answering needs none of this. It empties the prefix cache.
   *
   * Rejects with `bad_request` while an answer is being generated.
   */
  async logits(ids: readonly number[], options?: LogitsOptions): Promise<Float32Array[]> {
    if (!isListOfIds(ids) || ids.length === 0) {
      throw new PagewiseError('bad_request', 'logits: a list of at least one token id is needed');
    }
    const { positions: asked = [ids.length - 1] } = checkOptions('logits', options, { positions: 'list' });
    const positions = [...asked].sort((a, b) => a - b);
    const outside = positions.find((position) => !Number.isInteger(position) || position < 0 || position >= ids.length);
    if (outside !== undefined) {
      const text = `logits: positions from 0 to ${ids.length - 1} are allowed, ${String(outside)} given`;
      throw new PagewiseError('bad_request', text);
    }
    const twice = positions.find((position, index) => position === positions[index - 1]);
    if (twice !== undefined) throw new PagewiseError('bad_request', `logits: position ${twice} is given twice`);
    return this.#client.call('logits', { ids: [...ids], positions });
  }

  /** Renders messages (and tools) with the model's chat template: the text that a chat request would be answered to. */
  async applyTemplate(messages: readonly ChatRequestMessage[], options?: TemplateOptions): Promise<string> {
    const kinds = { addGenerationPrompt: 'flag', tools: 'any' } as const;
    const { addGenerationPrompt = true, tools } = checkOptions('applyTemplate', options, kinds);
    return this.#client.call('applyTemplate', { ...checkRendered(messages, tools), addGenerationPrompt });
  }

  /** Says how the engine is doing. */
  metrics(): Promise<EngineMetrics> {
    return this.#client.call('metrics', {});
  }

  /**
   * The same in Prometheus' text format, version 0.0.4, in seconds, labelled with the model's id. Names are vLLM's where it
   * has the same figure, with `pagewise:` for `vllm:`.
   */
  metricsText(): Promise<string> {
    return this.#client.call('metricsText', {});
  }

  /** Calls back with what each step from now on does; returns a function that ends it. */
  onStep(callback: (step: StepTrace) => void): () => void {
    if (typeof callback !== 'function') throw bad(`onStep: a function is needed, ${show(callback)} given`);
    return this.#client.listenToSteps(callback);
  }

  /**
   * Frees the GPU memory and ends the worker. Everything that is pending rejects with `cancelled`, and so does every
   * later call. May be called more than once.
   *
   * A shared engine is only left: others go on with it, and the last one frees it. If this tab was the leader, another one
   * loads the model again.
   */
  async unload(): Promise<void> {
    const error = new PagewiseError('cancelled', 'the engine was unloaded');
    await (this.#sharing?.leave(error) ?? this.#client.unload(error));
  }
}

function isListOfIds(ids: readonly number[]): boolean {
  // `from` also visits the holes of a list, which `every` skips.
  return Array.isArray(ids) && Array.from<number>(ids).every((id) => Number.isInteger(id) && id >= 0 && id < 2 ** 32);
}
