import { describe, expect, it } from 'vitest';
import { adviceFor, type ProblemCode } from '../src/state/advice';
import { type BrowserName, checkGpu, detectBrowser, type SystemName } from '../src/state/browser';
import { isCancelled, toProblem } from '../src/state/problem';
import { ERROR_CODES, PagewiseError } from './fake-engine';

const AGENTS: [string, number, BrowserName, SystemName][] = [
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    0,
    'chrome',
    'windows',
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0',
    0,
    'edge',
    'windows',
  ],
  [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36',
    0,
    'chrome',
    'linux',
  ],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0', 0, 'firefox', 'linux'],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15',
    0,
    'safari',
    'macos',
  ],
  [
    'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Safari/605.1.15',
    5,
    'safari',
    'ios',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0 Mobile/15E148 Safari/604.1',
    5,
    'chrome',
    'ios',
  ],
  [
    'Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36',
    5,
    'chrome',
    'android',
  ],
];

const CODES: ProblemCode[] = [
  'insecure',
  'no_webgpu',
  'no_adapter',
  'out_of_memory',
  'unsupported_model',
  'corrupt_model',
  'context_too_long',
  'device_lost',
  'network',
  'wrong_result',
  'storage_full',
  'bad_request',
  'unknown',
];

it.each(AGENTS)('%s with %d touch points is %s on %s', (agent, touchPoints, name, system) => {
  expect(detectBrowser(agent, touchPoints)).toEqual({ name, system });
});

describe('advice', () => {
  it.each(CODES)('for %s says what happened and what to do, on every browser', (code) => {
    for (const [agent, touchPoints] of AGENTS) {
      const advice = adviceFor(code, detectBrowser(agent, touchPoints));
      expect(advice.title).not.toBe('');
      expect(advice.text).not.toBe('');
      expect(advice.steps.length).toBeGreaterThan(0);
    }
  });

  it('names the flags only where they exist', () => {
    const steps = (name: BrowserName, system: SystemName): string =>
      adviceFor('no_webgpu', { name, system }).steps.join(' ');
    expect(steps('chrome', 'linux')).toContain('#enable-unsafe-webgpu');
    expect(steps('chrome', 'windows')).not.toContain('#enable-unsafe-webgpu');
    expect(steps('firefox', 'linux')).toContain('dom.webgpu.enabled');
    expect(steps('chrome', 'ios')).toContain('iOS');
    expect(steps('chrome', 'ios')).not.toContain('chrome://');
  });
});

describe('checkGpu', () => {
  const gpu = (adapter: unknown): { requestAdapter: () => Promise<unknown> } => ({
    requestAdapter: () => Promise.resolve(adapter),
  });

  it('tells the four cases apart', async () => {
    expect(await checkGpu(gpu({}), true)).toEqual({ kind: 'ok' });
    expect(await checkGpu(gpu(null), true)).toEqual({ kind: 'no_adapter' });
    expect(await checkGpu({ requestAdapter: () => Promise.reject(new Error('x')) }, true)).toEqual({
      kind: 'no_adapter',
    });
    expect(await checkGpu(undefined, true)).toEqual({ kind: 'no_webgpu' });
    expect(await checkGpu(undefined, false)).toEqual({ kind: 'insecure' });
  });
});

describe('problems', () => {
  it('knows every code of the engine that can reach a visitor', () => {
    const quiet = ['cancelled', 'queue_full', 'deadline_exceeded'];
    for (const code of ERROR_CODES.filter((known) => !quiet.includes(known))) {
      expect(toProblem(new PagewiseError(code, 'why')), code).toEqual({
        code: expect.not.stringMatching('unknown'),
        detail: 'why',
      });
    }
  });

  it('shows anything else as it is', () => {
    expect(toProblem(new TypeError('x is not a function'))).toEqual({ code: 'unknown', detail: 'x is not a function' });
    expect(toProblem('text')).toEqual({ code: 'unknown', detail: 'text' });
    expect(toProblem(null)).toEqual({ code: 'unknown', detail: 'null' });
  });

  it('takes a cancellation for none', () => {
    expect(isCancelled(new PagewiseError('cancelled', ''))).toBe(true);
    expect(isCancelled(new DOMException('', 'AbortError'))).toBe(true);
    expect(isCancelled(new PagewiseError('network', ''))).toBe(false);
  });
});
