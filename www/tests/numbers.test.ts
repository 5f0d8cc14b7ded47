import { describe, expect, it } from 'vitest';
import { formatRate } from '../src/i18n/core';
import { formatBytes, formatMs, formatSeconds } from '../src/i18n/format';
import { PaceMeter } from '../src/state/progress';

describe('format', () => {
  it.each([
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.0 kB'],
    [98_362_432, '98.4 MB'],
    [253_113_024, '253 MB'],
    [999_999_999, '1.0 GB'],
    [7.7e9, '7.7 GB'],
  ])('%d bytes is %s', (bytes, text) => {
    expect(formatBytes(bytes)).toBe(text);
  });

  it.each([
    [0.2, '0 s'],
    [59.4, '59 s'],
    [60, '1 min'],
    [75, '1 min 15 s'],
    [3720, '1 h 2 min'],
    [Infinity, ''],
  ])('%d seconds is "%s"', (seconds, text) => {
    expect(formatSeconds(seconds)).toBe(text);
  });

  it('chooses digits by size', () => {
    expect(formatMs(182.4)).toBe('182 ms');
    expect(formatMs(3210)).toBe('3.2 s');
    expect([0, 0.0004, 0.024, 0.1, 6.34].map(formatMs)).toEqual(['0 ms', '0.0004 ms', '0.02 ms', '0.1 ms', '6.3 ms']);
    expect(formatRate(0.17)).toBe('0.17 tokens/s');
    expect(formatRate(42.73)).toBe('42.7 tokens/s');
    expect(formatRate(131.2)).toBe('131 tokens/s');
  });
});

describe('PaceMeter', () => {
  it('says nothing before it saw enough', () => {
    const meter = new PaceMeter();
    expect(meter.update(0, 100, 0)).toEqual({ bytesPerS: null, secondsLeft: null });
    expect(meter.update(10, 100, 500)).toEqual({ bytesPerS: null, secondsLeft: null });
  });

  it('gives speed and time left', () => {
    const meter = new PaceMeter();
    meter.update(0, 100, 0);
    expect(meter.update(20, 100, 1000)).toEqual({ bytesPerS: 20, secondsLeft: 4 });
  });

  it('follows a change of speed', () => {
    const meter = new PaceMeter();
    for (let s = 0; s <= 20; s += 1) meter.update(s, 1000, s * 1000);
    let pace = meter.update(20, 1000, 20_000);
    for (let s = 1; s <= 8; s += 1) pace = meter.update(20 + 10 * s, 1000, 20_000 + s * 1000);
    expect(pace.bytesPerS).toBeCloseTo(10, 0);
  });

  it('knows no time left while stalled or without a total', () => {
    const meter = new PaceMeter();
    meter.update(50, 100, 0);
    expect(meter.update(50, 100, 2000).secondsLeft).toBeNull();
    const unknown = new PaceMeter();
    unknown.update(0, null, 0);
    expect(unknown.update(50, null, 2000).secondsLeft).toBeNull();
  });

  it('starts anew when the count falls back', () => {
    const meter = new PaceMeter();
    meter.update(0, 100, 0);
    meter.update(90, 100, 2000);
    expect(meter.update(0, 100, 2500).bytesPerS).toBeNull();
  });
});
