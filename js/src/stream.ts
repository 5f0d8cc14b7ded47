/**
 * A streamed answer: an async iterable that can be read once.
 */

import { PagewiseError } from './errors.js';
import type { Generation, GenerationEvent } from './generation.js';

/**
 * The chunks of a streamed answer. Read it once, with `for await`; leaving the loop early (`break`, `return`, `throw`)
 * cancels the request. An aborted signal or {@link cancel} makes the loop throw a {@link PagewiseError} with code
 * `cancelled`; other failures throw theirs.
 */
export class Stream<Chunk> implements AsyncIterable<Chunk> {
  readonly #generation: Generation;
  readonly #chunksOf: (event: GenerationEvent) => Chunk[];
  readonly #ready: Chunk[];
  #isUsed = false;
  /** Answers that have not ended yet. */
  #numLeft: number;

  /** @internal */
  constructor(generation: Generation, first: Chunk[], chunksOf: (event: GenerationEvent) => Chunk[]) {
    this.#generation = generation;
    this.#numLeft = generation.numChoices;
    this.#ready = first;
    this.#chunksOf = chunksOf;
  }

  /** Stops generating. Does nothing when the answer is complete. */
  cancel(): void {
    this.#generation.fail(new PagewiseError('cancelled', 'cancelled'), false);
  }

  /** Starts reading; a second call throws `bad_request`. */
  [Symbol.asyncIterator](): AsyncIterator<Chunk, undefined> {
    if (this.#isUsed) {
      throw new PagewiseError('bad_request', 'this stream was read already: a stream can be read only once');
    }
    this.#isUsed = true;
    let turn: Promise<unknown> = Promise.resolve();
    let isDone = false;
    const next = async (): Promise<IteratorResult<Chunk, undefined>> => {
      if (isDone) return { done: true, value: undefined };
      while (this.#ready.length === 0) {
        if (this.#numLeft === 0) {
          isDone = true;
          return { done: true, value: undefined };
        }
        await this.#more().catch((error: unknown) => {
          isDone = true;
          throw error;
        });
      }
      return { done: false, value: this.#ready.shift() as Chunk };
    };
    return {
      next: () => {
        const result = turn.then(next);
        turn = result.catch(() => undefined);
        return result;
      },
      return: async () => {
        isDone = true;
        this.cancel();
        return { done: true, value: undefined };
      },
    };
  }

  async #more(): Promise<void> {
    const event = await this.#generation.next();
    if (event.kind === 'finished') this.#numLeft -= 1;
    this.#ready.push(...this.#chunksOf(event));
  }
}
