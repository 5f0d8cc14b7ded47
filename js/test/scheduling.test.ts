import { afterEach, describe, expect, test, vi } from 'vitest';
import { Engine, PagewiseError, type StepTrace } from '../src/index.js';
import { Listeners } from '../src/listeners.js';
import { checkStepTargets, followVisibility, type PageVisibility } from '../src/load-options.js';
import { type FakeOptions, FakeWorker, fakeModel } from './fake.js';

const messages = [{ role: 'user', content: 'Hi' }] as const;

async function start(options: FakeOptions = {}, load: object = {}): Promise<{ engine: Engine; worker: FakeWorker }> {
  const worker = new FakeWorker(options);
  const engine = await Engine.load(fakeModel(), { createWorker: () => worker.asWorker, ...load });
  return { engine, worker };
}

async function read<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of stream) all.push(item);
  return all;
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
};

/** A page whose visibility a test decides. */
class FakePage extends EventTarget {
  visibilityState: DocumentVisibilityState = 'visible';
  numListeners = 0;
  override addEventListener(...args: Parameters<EventTarget['addEventListener']>): void {
    this.numListeners += 1;
    super.addEventListener(...args);
  }
  override removeEventListener(...args: Parameters<EventTarget['removeEventListener']>): void {
    this.numListeners -= 1;
    super.removeEventListener(...args);
  }
  become(state: DocumentVisibilityState): void {
    this.visibilityState = state;
    this.dispatchEvent(new Event('visibilitychange'));
  }
  get asPage(): PageVisibility {
    return this as unknown as PageVisibility;
  }
}

afterEach(() => vi.unstubAllGlobals());

describe('progress', () => {
  test('comes in chunks of its own, when asked', async () => {
    const { engine } = await start({ answer: 'a', prefillSteps: 3 });
    const stream_options = { include_progress: true, include_usage: true };
    const expected = [
      { state: 'waiting', position: 0, estimated_wait_ms: null },
      ...[1, 2, 3].map((computed) => ({ state: 'prefill', total: 3, cached: 0, computed })),
    ];
    const chat = await read(await engine.chat.completions.create({ messages, stream: true, stream_options }));
    expect(chat.flatMap((chunk) => chunk.progress ?? [])).toEqual(expected);
    const own = chat.filter((chunk) => chunk.progress !== undefined);
    expect(own.every((chunk) => chunk.choices.length === 0 && chunk.usage === null)).toBe(true);
    const text = await read(await engine.completions.create({ prompt: 'x', stream: true, stream_options }));
    expect(text.flatMap((chunk) => chunk.progress ?? [])).toEqual(expected);
    const quiet = await read(await engine.chat.completions.create({ messages, stream: true }));
    expect(quiet.some((chunk) => 'progress' in chunk)).toBe(false);
  });
});

describe('a full queue', () => {
  test('says when to come again', async () => {
    const { engine, worker } = await start();
    worker.engine.submit = () => {
      throw { code: 'queue_full', message: 'queue full: 3 requests, 2 allowed', retryAfterMs: 1500 };
    };
    const rejection = await engine.chat.completions.create({ messages }).catch((error: unknown) => error);
    expect(rejection).toBeInstanceOf(PagewiseError);
    expect(rejection).toMatchObject({ code: 'queue_full', retryAfterMs: 1500 });
    worker.engine.submit = () => {
      throw { code: 'queue_full', message: 'queue full', retryAfterMs: null };
    };
    const other = await engine.chat.completions.create({ messages }).catch((error: unknown) => error);
    expect((other as PagewiseError).retryAfterMs).toBeUndefined();
  });
});

describe('load options', () => {
  test('reach the module', async () => {
    const loadEngine = vi.fn(() => Promise.reject({ code: 'out_of_memory', message: 'too large' }));
    const serving = {
      maxRunning: 3,
      maxQueued: 9,
      maxStepsAhead: 2,
      maxStepTokens: 64,
      batching: 'static',
      chunkedPrefill: false,
    } as const;
    await expect(start({ module: { loadEngine } }, serving)).rejects.toMatchObject({ code: 'out_of_memory' });
    expect(loadEngine.mock.calls[0]).toMatchObject([expect.anything(), serving, expect.any(Function)]);
  });

  test.each([
    [{ maxRunning: 0 }, 'maxRunning: a positive integer'],
    [{ maxQueued: 1.5 }, 'maxQueued: a positive integer'],
    [{ maxQueued: 2 ** 32 }, 'maxQueued: a positive integer'],
    [{ maxStepsAhead: 0 }, 'maxStepsAhead: a positive integer'],
    [{ maxStepTokens: 1.5 }, 'maxStepTokens: a positive integer'],
    [{ batching: 'dynamic' }, 'batching: "continuous", "static", "none" are supported, "dynamic" given'],
    [{ chunkedPrefill: 'yes' }, 'chunkedPrefill: true or false'],
    [{ stepTargetMs: 0 }, 'stepTargetMs: a number over 0'],
    [{ stepTargetMs: '30' }, 'stepTargetMs: a number over 0'],
    [{ stepTargetMs: { visible: -1 } }, 'stepTargetMs.visible: a number over 0'],
    [{ stepTargetMs: { shown: 1 } }, 'stepTargetMs.shown is not supported'],
  ])('%j is refused', async (options, message) => {
    const load = Engine.load(fakeModel(), options as never);
    await expect(load).rejects.toMatchObject({ code: 'bad_request', message: expect.stringContaining(message) });
  });

  test('plan has none but the one that takes memory', async () => {
    const plan = Engine.plan(fakeModel(), { maxQueued: 1 } as never);
    await expect(plan).rejects.toMatchObject({ message: expect.stringContaining('maxQueued is not supported') });
    const other = Engine.plan(fakeModel(), { maxRunning: 0 });
    await expect(other).rejects.toMatchObject({ message: expect.stringContaining('maxRunning: a positive') });
  });
});

describe('the step target', () => {
  test.each([
    [undefined, { visible: 30, hidden: 200 }],
    [null, { visible: null, hidden: null }],
    [12.5, { visible: 12.5, hidden: 12.5 }],
    [{ hidden: null }, { visible: 30, hidden: null }],
    [
      { visible: 16, hidden: undefined },
      { visible: 16, hidden: 200 },
    ],
  ])('%j is %j', (given, targets) => {
    expect(checkStepTargets(given as never)).toEqual(targets);
  });

  test('follows the visibility, and is told only when it changes', () => {
    const page = new FakePage();
    const told: (number | null)[] = [];
    const end = followVisibility({ visible: 30, hidden: null }, (ms) => told.push(ms), page.asPage);
    page.become('visible');
    page.become('hidden');
    page.become('hidden');
    page.become('visible');
    expect(told).toEqual([30, null, 30]);
    end();
    page.become('hidden');
    expect([told.length, page.numListeners]).toEqual([3, 0]);
    followVisibility({ visible: 5, hidden: 5 }, (ms) => told.push(ms), page.asPage);
    expect([told.at(-1), page.numListeners]).toEqual([5, 0]);
  });

  test('reaches the engine from the document, until it is unloaded', async () => {
    const page = new FakePage();
    page.visibilityState = 'hidden';
    vi.stubGlobal('document', page);
    const { engine, worker } = await start();
    await until(() => worker.engine.stepTarget === 200);
    page.become('visible');
    await until(() => worker.engine.stepTarget === 30);
    expect(page.numListeners).toBe(1);
    await engine.unload();
    expect(page.numListeners).toBe(0);
  });

  test('without a document is that of a visible page', async () => {
    const { worker } = await start();
    await until(() => worker.engine.stepTarget === 30);
  });

  test('null is no limit, and a worker that crashed leaves no listener behind', async () => {
    const page = new FakePage();
    vi.stubGlobal('document', page);
    const { engine, worker } = await start({}, { stepTargetMs: { visible: null } });
    await engine.tokenize('a');
    expect(worker.engine.stepTarget).toBe(undefined);
    worker.onerror?.({ message: 'boom' });
    expect(page.numListeners).toBe(0);
  });
});

describe('onStep', () => {
  test('tells of steps by the ids of answers, on the clock of the page', async () => {
    const { engine, worker } = await start({ answer: 'ab', prefillSteps: 2 });
    const steps: StepTrace[] = [];
    const end = engine.onStep((step) => steps.push(step));
    const { id } = await engine.chat.completions.create({ messages });
    await until(() => steps.length === 5);
    expect(steps.map((step) => step.parts)).toEqual(
      [false, false, true, true, true].map((samples) => [
        { request: id, choice: 0, start: 0, end: 1, numPrompt: 3, samples },
      ]),
    );
    expect(steps[0]).toMatchObject({ startMs: 1, endMs: 2, gpuMs: null, numWaiting: 0, preempted: [] });
    end();
    await engine.chat.completions.create({ messages });
    await until(() => !worker.engine.isTracing);
    expect(steps.length).toBe(5);
  });

  test('listens while anybody does', async () => {
    const { engine, worker } = await start();
    const ends = [engine.onStep(() => undefined), engine.onStep(() => undefined)];
    await until(() => worker.engine.isTracing);
    ends[0]?.();
    await engine.tokenize('a');
    expect(worker.engine.isTracing).toBe(true);
    ends[1]?.();
    await until(() => !worker.engine.isTracing);
    expect(() => engine.onStep('x' as never)).toThrow('onStep: a function is needed');
  });
});

describe('callbacks', () => {
  test('that throw take nothing from the others, and the page learns of it', async () => {
    const uncaught: unknown[] = [];
    vi.stubGlobal('queueMicrotask', (task: () => void) => {
      try {
        task();
      } catch (error) {
        uncaught.push(error);
      }
    });
    const listeners = new Listeners<number>(() => undefined);
    const heard: number[] = [];
    listeners.add(() => {
      throw new Error('boom');
    });
    listeners.add((value) => heard.push(value));
    listeners.tell([1, 2]);
    expect(heard).toEqual([1, 2]);
    expect(uncaught).toEqual([new Error('boom'), new Error('boom')]);
  });

  test('that another callback took out are not called any more', () => {
    const listeners = new Listeners<number>(() => undefined);
    const heard: number[] = [];
    listeners.add(() => end());
    const end = listeners.add((value) => heard.push(value));
    listeners.tell([1]);
    expect(heard).toEqual([]);
  });
});

test("a page without a working timeline gets its answers, and is told of the measures' failure", async () => {
  vi.spyOn(console, 'warn').mockImplementation(() => undefined);
  vi.spyOn(performance, 'measure').mockImplementation(() => {
    throw new Error('no timeline');
  });
  const { engine } = await start();
  const answer = await engine.chat.completions.create({ messages, n: 2 });
  expect(answer.choices.length).toBe(2);
  expect(console.warn).toHaveBeenCalledOnce();
  vi.restoreAllMocks();
});

describe('metrics', () => {
  test('are there as text, with the name of the model', async () => {
    const { engine } = await start();
    expect(await engine.metricsText()).toBe('pagewise:num_requests_running{model_name="fake-model"} 0\n');
  });
});

describe('the timeline', () => {
  async function measured(run: () => Promise<unknown>): Promise<PerformanceEntry[]> {
    const seen: PerformanceEntry[] = [];
    const observer = new PerformanceObserver((list) => void seen.push(...list.getEntries()));
    observer.observe({ entryTypes: ['measure'] });
    await run();
    await new Promise((resolve) => setTimeout(resolve, 20));
    observer.disconnect();
    return seen.filter((entry) => entry.name.startsWith('pagewise:'));
  }

  test('shows the phases of a request, and keeps none of them', async () => {
    const { engine } = await start();
    let id = '';
    const before = performance.now();
    const seen = await measured(async () => {
      ({ id } = await engine.chat.completions.create({ messages, n: 2 }));
    });
    expect(seen.map((entry) => [entry.name, (entry as PerformanceMeasure).detail])).toEqual(
      [
        ['pagewise:queue', { tokens: 3 }],
        ['pagewise:prefill', { tokens: 1 }],
        ['pagewise:decode', { choice: 0, tokens: 5 }],
        ['pagewise:decode', { choice: 1, tokens: 6 }],
      ].map(([name, detail]) => [
        name,
        {
          request: id,
          ...(detail as object),
          devtools: expect.objectContaining({ dataType: 'track-entry', trackGroup: 'Pagewise', track: 'Requests' }),
        },
      ]),
    );
    const [queue, prefill, decode] = seen as [PerformanceEntry, PerformanceEntry, PerformanceEntry];
    expect(queue.startTime).toBeGreaterThanOrEqual(before);
    expect(queue.duration).toBeCloseTo(1);
    expect(prefill.startTime).toBeCloseTo(queue.startTime + 1);
    expect(prefill.duration).toBeCloseTo(1);
    expect(decode.startTime).toBeCloseTo(queue.startTime + 2);
    expect(decode.duration).toBeCloseTo(4 * 3);
    expect(performance.getEntriesByType('measure')).toEqual([]);
  });

  test('shows a warming without a decode, and nothing of what was cancelled', async () => {
    const { engine } = await start({ prefillSteps: 3 });
    const warmed = await measured(() => engine.cache.warm(messages));
    expect(warmed.map((entry) => entry.name)).toEqual(['pagewise:queue', 'pagewise:prefill']);
    const none = await measured(async () => {
      const stream = await engine.chat.completions.create({ messages, stream: true });
      stream.cancel();
    });
    expect(none).toEqual([]);
  });
});
