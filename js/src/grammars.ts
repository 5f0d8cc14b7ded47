/**
 * The module that compiles constraints, loaded when the first request has one. Requests wait for it without holding up others.
 */

import { PagewiseError } from './errors.js';
import type { WasmEngine } from './wasm.js';

/** The exports of the second WebAssembly module; only the engine knows what is in it. */
export type GrammarModule = { readonly createGrammars: unknown };

/** Loads the module and gives it to the engine. */
export class Grammars {
  readonly #load: () => Promise<GrammarModule>;
  readonly #engines = new WeakSet<WasmEngine>();
  /** Calls that wait for the module. */
  readonly #waiting = new Set<number>();
  #loading: Promise<GrammarModule> | undefined;
  #loaded: GrammarModule | undefined;

  /** `load` starts the module; what fails is tried again with the next request. */
  constructor(load: () => Promise<GrammarModule>) {
    this.#load = load;
  }

  /** Whether the engine has what it needs, now. */
  isReady(engine: WasmEngine): boolean {
    if (this.#loaded === undefined) return false;
    if (!this.#engines.has(engine)) {
      engine.useGrammars(this.#loaded);
      this.#engines.add(engine);
    }
    return true;
  }

  /** Loads the module for a call; then calls back with why it failed, if it did. Not if the call was cancelled meanwhile. */
  waitFor(call: number, done: (failure?: PagewiseError) => void): void {
    this.#waiting.add(call);
    this.#loading ??= this.#load();
    const end = (failure?: PagewiseError): void => {
      if (this.#waiting.delete(call)) done(failure);
    };
    this.#loading.then(
      (module) => {
        this.#loaded = module;
        end();
      },
      (cause: unknown) => {
        this.#loading = undefined;
        const text = cause instanceof Error ? cause.message : String(cause);
        const hint = 'is grammar_bg.wasm served beside pagewise_bg.wasm?';
        end(
          new PagewiseError('network', `the module for constraints could not be started (${text}): ${hint}`, { cause }),
        );
      },
    );
  }

  /** Forgets a call that waits; says whether it did. */
  cancel(call: number): boolean {
    return this.#waiting.delete(call);
  }
}
