/**
 * A model's bytes, whatever they come from: what the WebAssembly module reads.
 */

import { PagewiseError } from './errors.js';
import { HttpPart, type Part } from './http-part.js';
import type { SourceSpec } from './protocol.js';
import { NETWORK, type NetworkEnvironment } from './retry.js';
import type { ByteSource } from './wasm.js';

/** A part in memory or on the visitor's disk. */
export class BlobPart implements Part {
  readonly #blob: Blob;
  readonly #name: string;

  constructor(blob: Blob, name: string) {
    this.#blob = blob;
    this.#name = name;
  }

  async length(): Promise<number> {
    return this.#blob.size;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const size = this.#blob.size;
    if (offset + length > size) {
      const message = `${this.#name} has ${size} bytes, ${offset + length} are needed: the file is cut short`;
      throw new PagewiseError('corrupt_model', message, { offset });
    }
    try {
      return new Uint8Array(await this.#blob.slice(offset, offset + length).arrayBuffer());
    } catch (cause) {
      const message = `${this.#name} can no longer be read (at byte ${offset}): it was moved, changed or removed`;
      throw new PagewiseError('network', message, { offset, cause });
    }
  }

  close(): void {}
}

/** The bytes of one model. */
export class ModelReader implements ByteSource {
  readonly #parts: Part[];
  readonly #spec: SourceSpec;
  /** The first failure: it says more than what the module makes of it. */
  failure: PagewiseError | undefined;

  /** Opens nothing yet. */
  constructor(spec: SourceSpec, environment: NetworkEnvironment = NETWORK) {
    this.#spec = spec;
    this.#parts = spec.parts.map((part) =>
      part.kind === 'blob' ? new BlobPart(part.blob, part.name) : new HttpPart(part.urls, spec.headers, environment),
    );
  }

  get numParts(): number {
    return this.#parts.length;
  }

  partLength(part: number): Promise<number> {
    return this.#noting(async () => {
      const length = await this.#part(part).length();
      const { bytes } = this.#spec;
      if (bytes !== undefined && this.#parts.length === 1 && bytes !== length) {
        const message = `${this.#spec.id} has ${length} bytes, the registry says ${bytes}`;
        throw new PagewiseError('corrupt_model', message);
      }
      return length;
    });
  }

  read(part: number, offset: number, length: number): Promise<Uint8Array> {
    return this.#noting(() => this.#part(part).read(offset, length));
  }

  /** Ends everything in progress and lets go of what was kept. */
  close(): void {
    for (const part of this.#parts) part.close();
  }

  #part(index: number): Part {
    const part = this.#parts[index];
    if (part === undefined) throw new PagewiseError('corrupt_model', `part ${index} asked, ${this.numParts} given`);
    return part;
  }

  async #noting<T>(read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (error instanceof PagewiseError) this.failure ??= error;
      throw error;
    }
  }
}
