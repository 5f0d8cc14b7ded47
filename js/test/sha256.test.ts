import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { Sha256 } from '../src/sha256.js';

const bytesOf = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => (i * 167 + (i >> 7)) & 255);
const expected = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

test('is what others compute, at every length around a block', () => {
  for (let length = 0; length < 200; length++) {
    const bytes = bytesOf(length);
    expect(new Sha256().update(bytes).hex()).toBe(expected(bytes));
  }
});

test('does not depend on the pieces, nor on where they lie in their buffer', () => {
  const bytes = bytesOf(100_003);
  for (const step of [1, 63, 64, 65, 1000, 4097]) {
    const hash = new Sha256();
    for (let at = 0; at < bytes.length; at += step) hash.update(bytes.subarray(at, at + step));
    expect(hash.hex()).toBe(expected(bytes));
  }
});
