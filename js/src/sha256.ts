/**
 * SHA-256 (FIPS 180-4) of bytes that come piece by piece, which `crypto.subtle` cannot.
 */

const BLOCK_BYTES = 64;

/** The first 32 bits of the fractional part of a root of each of the first primes. */
function fractions(count: number, root: (prime: number) => number): Int32Array {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) {
    let isPrime = true;
    for (let d = 2; d * d <= n; d++) isPrime &&= n % d !== 0;
    if (isPrime) found.push((root(n) % 1) * 2 ** 32);
  }
  return Int32Array.from(found, (value) => value | 0);
}

const ROUNDS = fractions(64, Math.cbrt);
const START = fractions(8, Math.sqrt);

/** One hash that is being computed. */
export class Sha256 {
  readonly #state = START.slice();
  readonly #schedule = new Int32Array(64);
  readonly #rest = new Uint8Array(BLOCK_BYTES);
  #numRest = 0;
  #numBytes = 0;

  /** Adds bytes. */
  update(bytes: Uint8Array): this {
    this.#numBytes += bytes.length;
    let at = 0;
    if (this.#numRest > 0) {
      at = Math.min(BLOCK_BYTES - this.#numRest, bytes.length);
      this.#rest.set(bytes.subarray(0, at), this.#numRest);
      this.#numRest += at;
      if (this.#numRest < BLOCK_BYTES) return this;
      this.#compress(new DataView(this.#rest.buffer), 0);
      this.#numRest = 0;
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (; at + BLOCK_BYTES <= bytes.length; at += BLOCK_BYTES) this.#compress(view, at);
    this.#rest.set(bytes.subarray(at));
    this.#numRest = bytes.length - at;
    return this;
  }

  /** The hash in lower-case hexadecimal; nothing can be added after it. */
  hex(): string {
    const numBits = BigInt(this.#numBytes) * 8n;
    const isLong = this.#numRest >= BLOCK_BYTES - 8;
    const end = new Uint8Array((isLong ? 2 : 1) * BLOCK_BYTES - this.#numRest);
    end[0] = 0x80;
    new DataView(end.buffer).setBigUint64(end.length - 8, numBits);
    this.update(end);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #compress(view: DataView, at: number): void {
    const w = this.#schedule;
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15] as number;
      const y = w[i - 2] as number;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = ((w[i - 16] as number) + s0 + (w[i - 7] as number) + s1) | 0;
    }
    const state = this.#state;
    let a = state[0] as number;
    let b = state[1] as number;
    let c = state[2] as number;
    let d = state[3] as number;
    let e = state[4] as number;
    let f = state[5] as number;
    let g = state[6] as number;
    let h = state[7] as number;
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + (ROUNDS[i] as number) + (w[i] as number)) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    const sums = [a, b, c, d, e, f, g, h];
    for (let i = 0; i < 8; i++) state[i] = (state[i] as number) + (sums[i] as number);
  }
}
