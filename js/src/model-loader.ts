/**
 * Models on their way into the module: found in storage or read from where they come from, planned, loaded.
 */

import { isErrorRecord, PagewiseError } from './errors.js';
import type { AdapterProbe, Calls, EngineOptions, FromWorker, SourceSpec } from './protocol.js';
import { ModelReader } from './reader.js';
import { NETWORK } from './retry.js';
import { type FoundModel, StoredModels } from './stored-models.js';
import type { EngineInfo, LoadPhase, MemoryPlan, ModelDescription } from './types.js';
import type { WasmEngine, WasmModule } from './wasm.js';
import type { WorkerEnvironment } from './worker-environment.js';

/** See the file's comment. */
export class ModelLoader {
  readonly #environment: WorkerEnvironment;
  readonly #models: StoredModels | undefined;
  readonly #post: (message: FromWorker) => void;
  #module: Promise<WasmModule> | undefined;

  /** Starts nothing yet; `post` gets progress. */
  constructor(environment: WorkerEnvironment, post: (message: FromWorker) => void) {
    this.#environment = environment;
    this.#post = post;
    const { storage, network } = environment;
    if (storage !== undefined) this.#models = new StoredModels(storage, network);
  }

  /** Describes a model from its header. */
  async inspect(source: SourceSpec): Promise<ModelDescription> {
    return this.#withReader(await this.#local(source), (module, reader) => module.inspect(reader));
  }

  /** Plans for the GPU that is there, else for the smallest that WebGPU allows. */
  async plan({ source, options }: Calls['plan']['args']): Promise<MemoryPlan> {
    const adapter = await this.#environment.probeAdapter().catch(() => undefined);
    return this.#planFor(await this.#local(source), options, adapter);
  }

  /** Loads a model, which is stored first if that is wanted and if it can run here. */
  async load({ source: given, options: asked, store }: Calls['load']['args']): Promise<[WasmEngine, EngineInfo]> {
    const probe = await this.#environment.probeAdapter();
    const source = store ? await this.#kept(given, asked, probe) : await this.#local(given);
    const remembered = asked.autotune ? await this.#environment.tunings?.recall() : undefined;
    const options = { ...asked, adapter: probe, remembered: remembered ?? {} };
    const onProgress = (phase: LoadPhase, loadedBytes: number, totalBytes: number): void =>
      this.#post({ type: 'progress', progress: { phase, loadedBytes, totalBytes } });
    const loading = this.#withReader(source, (module, reader) => module.loadEngine(reader, options, onProgress));
    const engine = await this.#environment.whileWaiting(loading).catch((error: unknown) => {
      // There was no other model: what is there is a part of this one.
      this.#environment.releaseGpu?.();
      throw error;
    });
    const measured = engine.measuredTuning();
    if (measured !== null) await this.#environment.tunings?.remember(measured.key, measured.choice);
    const { vendor, architecture, description, isSoftware, features } = probe;
    const info = engine.info();
    const { id, name } = source;
    const adapter = { vendor, architecture, description, isSoftware, features };
    return [engine, { ...info, id, name: name || info.name || id, adapter }];
  }

  /** Downloads a model into storage. */
  download(source: SourceSpec): Promise<FoundModel> {
    const onProgress = (loadedBytes: number, totalBytes: number): void =>
      this.#post({ type: 'progress', progress: { phase: 'download', loadedBytes, totalBytes } });
    return this.stored().download(source, { onProgress });
  }

  /** The storage; throws where there is none. */
  stored(): StoredModels {
    if (this.#models === undefined) throw new PagewiseError('storage_full', 'there is no storage for models here');
    return this.#models;
  }

  #planFor(source: SourceSpec, given: EngineOptions, adapter: AdapterProbe | undefined): Promise<MemoryPlan> {
    const options = adapter === undefined ? given : { ...given, adapter };
    return this.#withReader(source, (module, reader) => module.plan(reader, options));
  }

  /** The source as it is stored, else as it is. */
  async #local(source: SourceSpec): Promise<SourceSpec> {
    // What cannot be found, for whatever reason, is read from where it comes from.
    const found = await this.#models?.find(source).catch(() => undefined);
    if (found !== undefined) return storedSource(source, found);
    if (source.failure !== undefined) throw PagewiseError.fromRecord(source.failure);
    return source;
  }

  /** The source in storage, downloaded if need be and if it can run here. */
  async #kept(source: SourceSpec, options: EngineOptions, adapter: AdapterProbe): Promise<SourceSpec> {
    const local = await this.#local(source);
    if (local.parts.every(({ kind }) => kind === 'blob')) return local;
    await this.#planFor(local, options, adapter);
    return storedSource(source, await this.download(source));
  }

  async #withReader<T>(source: SourceSpec, use: (module: WasmModule, reader: ModelReader) => Promise<T>): Promise<T> {
    this.#module ??= this.#environment.loadModule();
    const module = await this.#module.catch((error: unknown) => {
      // The next one may try again.
      this.#module = undefined;
      throw error;
    });
    const reader = new ModelReader(source, this.#environment.network ?? NETWORK);
    try {
      return await use(module, reader);
    } catch (error) {
      // The module knows the failure of a read as `network` and a text; the reader knows its URL, status and offset.
      throw isErrorRecord(error) && error.code === 'network' ? (reader.failure ?? error) : error;
    } finally {
      reader.close();
    }
  }
}

function storedSource(source: SourceSpec, { model, parts }: FoundModel): SourceSpec {
  const name = model.name === model.id ? {} : { name: model.name };
  return { id: source.id, ...name, parts, headers: {} };
}
