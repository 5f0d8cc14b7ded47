/** The cache lab's logic: what is expected, what the pool and the trie show, and an experiment on the fake engine. */
import { describe, expect, it, vi } from 'vitest';
import { expect as expectation } from '../../src/labs/cache/expectation';
import { EXPERIMENTS, requestsOf } from '../../src/labs/cache/experiments';
import { CacheLab } from '../../src/labs/cache/lab';
import { cellsOf, summarise } from '../../src/labs/cache/pool';
import { blocksOf } from '../../src/labs/cache/room';
import {
  type ExperimentRun,
  execute,
  isAsExpected,
  isTight,
  prepare,
  savedMs,
  sizeLimit,
  sizeWithRoom,
} from '../../src/labs/cache/run';
import { trieOf } from '../../src/labs/cache/trie';
import { Writer } from '../../src/labs/cache/writer';
import { elide, runsOf } from '../../src/labs/shared/token-runs';
import { Engine } from '../fake-engine';

const SETTINGS = { enabled: true, ttlSeconds: null, pin: false };
const load = (): Promise<Engine> => Engine.load('smollm2-135m-instruct', { contextLength: 2048 });
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, index) => from + index);

/** The fake has what the labs use of the engine. */
const asEngine = (engine: Engine): never => engine as never;

async function run(engine: Engine, id: (typeof EXPERIMENTS)[number], settings = SETTINGS): Promise<ExperimentRun> {
  const prepared = await prepare(asEngine(engine), id, 300);
  return execute(asEngine(engine), prepared, settings, () => undefined, new AbortController().signal);
}

describe('what is expected', () => {
  const ids = range(0, 100);

  it('is nothing of the first prompt', () => {
    expect(expectation(ids, [])).toEqual({
      promptTokens: 100,
      cachedTokens: 0,
      fullBlocks: 0,
      tailTokens: 0,
      like: null,
    });
  });

  it('is the longest common beginning, in full blocks and a tail', () => {
    const [short, long] = [
      [...range(0, 20), 999],
      [...range(0, 53), 999, ...range(54, 100)],
    ];
    expect(expectation(ids, [short, long])).toMatchObject({ cachedTokens: 53, fullBlocks: 3, tailTokens: 5, like: 1 });
  });

  it('never is the last token, whose result the answer is drawn from', () => {
    expect(expectation(ids, [range(0, 120)]).cachedTokens).toBe(99);
    expect(expectation(ids, [ids]).cachedTokens).toBe(99);
  });
});

describe('the prepared prompts', () => {
  it.each(EXPERIMENTS)('of %s are about as long as asked, and differ', async (id) => {
    const writer = await Writer.for(asEngine(await load()));
    const requests = requestsOf(id, writer, 600);
    const engine = await load();
    const lengths = await Promise.all(
      requests.map(async (messages) => (await engine.tokenize(await engine.applyTemplate(messages))).length),
    );
    expect(requests.length).toBeGreaterThan(1);
    for (const length of lengths) expect(length).toBeGreaterThan(200);
    expect(Math.max(...lengths)).toBeLessThan(700);
    const texts = requests.map((messages) => JSON.stringify(messages));
    expect(new Set(texts).size).toBe(id === 'crowded' ? texts.length - 1 : texts.length);
  });

  it('leave room for two in a pool, and for the service prompt once', () => {
    expect(2 * sizeWithRoom('same', 4096)).toBeLessThan(4096);
    expect(sizeWithRoom('service', 4096)).toBeGreaterThan(3000);
    expect(sizeWithRoom('same', 128)).toBe(64);
    // A visitor may ask for more, of which only one has room.
    expect(2 * sizeLimit(4096)).toBeGreaterThan(4096);
    expect(sizeLimit(4096)).toBeLessThan(4000);
  });
});

describe('an experiment', () => {
  it.each(EXPERIMENTS.filter((id) => id !== 'crowded'))('%s measures what its tokens lead to', async (id) => {
    const done = await run(await load(), id);
    const { requests } = done;
    expect(isTight(done)).toBe(false);
    for (const request of requests) {
      expect(request.measured?.promptTokens).toBe(request.expected.promptTokens);
      expect(isAsExpected(done, request)).toBe(true);
    }
    expect(requests[0]?.measured?.cachedTokens).toBe(0);
  });

  it('shows that a time in front costs what it spares at the end', async () => {
    const engine = await load();
    const share = async (id: 'time_first' | 'time_last'): Promise<number> => {
      const last = (await run(engine, id)).requests.at(-1)?.measured;
      return (last?.cachedTokens ?? 0) / (last?.promptTokens ?? 1);
    };
    expect(await share('time_first')).toBeLessThan(0.1);
    expect(await share('time_last')).toBeGreaterThan(0.9);
  });

  it('is told step by step, under a salt of its own', async () => {
    const engine = asEngine(await load());
    const prepared = await prepare(engine, 'branches', 300);
    expect(prepared.requests.map(({ measured }) => measured)).toEqual([null, null, null]);
    const seen: number[] = [];
    const onChange = (now: ExperimentRun): void => {
      seen.push(now.requests.filter(({ measured }) => measured !== null).length);
    };
    const done = await execute(engine, prepared, SETTINGS, onChange, new AbortController().signal);
    expect(seen).toEqual([1, 2, 3]);
    expect(savedMs(done, 0)).toBeNull();
    expect(savedMs(done, 1)).toBeGreaterThan(0);
    expect((await prepare(engine, 'branches', 300)).salt).not.toBe(prepared.salt);
  });

  it('reuses nothing with the cache off, and says that this is not as expected', async () => {
    const done = await run(await load(), 'same', { ...SETTINGS, enabled: false });
    const { requests } = done;
    expect(requests.map(({ measured }) => measured?.cachedTokens)).toEqual([0, 0]);
    expect(requests.map((request) => isAsExpected(done, request))).toEqual([true, false]);
  });

  it('knows when the pool is too small for it, and then expects no more than a limit', async () => {
    const prompts = [
      [...range(0, 40), 1],
      [...range(0, 40), 2],
    ];
    // Two blocks in common; the third and the answer of each are its own.
    expect(blocksOf(prompts, 6)).toBe(2 + 2);
    expect(blocksOf([range(0, 32)], 6)).toBe(3);
    expect(blocksOf([range(0, 32), range(100, 132)], 6)).toBe(6);
    const done = await run(await load(), 'same');
    const small = { ...done, pool: done.needed - 1 };
    expect([isTight({ ...done, pool: done.needed }), isTight(small)]).toEqual([false, true]);
    const [, second] = done.requests;
    const less = { ...second, measured: { ...second?.measured, cachedTokens: 3 } } as (typeof done.requests)[number];
    expect([isAsExpected(done, less), isAsExpected(small, less)]).toEqual([false, true]);
  });

  it('ends when it is stopped', async () => {
    const engine = asEngine(await load());
    const prepared = await prepare(engine, 'same', 300);
    const stopped = vi.fn();
    await expect(execute(engine, prepared, SETTINGS, stopped, AbortSignal.abort())).rejects.toMatchObject({
      code: 'cancelled',
    });
    expect(stopped).not.toHaveBeenCalled();
  });
});

describe('the lab', () => {
  it('wants a small pool for what fills it, where that would take minutes', async () => {
    const poolOf = async (contextLength: number, isSoftware: boolean): Promise<number | null> => {
      const engine = await Engine.load('smollm2-135m-instruct', { contextLength });
      Object.assign(engine.info.adapter, { isSoftware });
      const lab = new CacheLab(asEngine(engine));
      const blocks = lab.poolFor('crowded');
      expect(lab.poolFor('same')).toBeNull();
      lab.close();
      return blocks;
    };
    expect(await poolOf(2048, true)).toBe(32);
    expect(await poolOf(512, true)).toBeNull();
    expect(await poolOf(2048, false)).toBeNull();
  });
});

describe('the pool', () => {
  it('knows whose a block is: full blocks of a common beginning are everybody’s', async () => {
    const engine = await load();
    const { requests, salt } = await run(engine, 'same');
    const [blocks, prefixes] = await Promise.all([engine.cache.blocks(), engine.cache.prefixes()]);
    const prompts = requests.map(({ ids }) => ids);
    const cells = cellsOf(blocks, prefixes, prompts, salt);
    const both = cells.filter(({ owners }) => owners.length === 2);
    expect(both).toHaveLength(requests[1]?.expected.fullBlocks ?? -1);
    expect(both.every(({ state, isForeign }) => state === 'cached' && !isForeign)).toBe(true);
    expect(summarise(cells)).toMatchObject({
      total: 128,
      held: 0,
      shared: 0,
      cached: blocks.filter((b) => b.cached).length,
    });
    // Of another salt, nothing is the lab's.
    expect(cellsOf(blocks, prefixes, prompts, 'other').every(({ owners }) => owners.length === 0)).toBe(true);
  });

  it('tells blocks in use from cached ones', () => {
    const block = (numHolders: number): Parameters<typeof cellsOf>[0][number] => ({
      group: 0,
      block: numHolders,
      numHolders,
      holders: [],
      cached: null,
    });
    const states = cellsOf([block(0), block(1), block(2)], [], [], '').map(({ state }) => state);
    expect(states).toEqual(['free', 'held', 'shared']);
  });
});

describe('the trie', () => {
  it('has what prompts share once, and forks where they part', async () => {
    const engine = await load();
    const { requests, salt } = await run(engine, 'branches');
    const [root, ...others] = trieOf(await engine.cache.prefixes(), salt);
    expect(others).toEqual([]);
    expect(root?.numBlocks).toBe(requests[1]?.expected.fullBlocks);
    expect(root?.children).toHaveLength(3);
    expect(root?.children.every(({ start }) => start === (root?.numBlocks ?? 0) * 16)).toBe(true);
    expect(trieOf(await engine.cache.prefixes(), 'other')).toEqual([]);
  });
});

describe('tokens', () => {
  it('are coloured by what became of them', () => {
    const runs = runsOf(['a', 'b', 'c', 'd', 'e'], 2, 4);
    expect(runs.map(({ kind, start, texts }) => [kind, start, texts.join('')])).toEqual([
      ['reused', 0, 'ab'],
      ['computed', 2, 'cd'],
      ['generated', 4, 'e'],
    ]);
    expect(runsOf(['a'], 0, 1).map(({ kind }) => kind)).toEqual(['computed']);
  });

  it('are left out in the middle of long runs only', () => {
    const long = { kind: 'reused' as const, start: 0, texts: range(0, 100).map(String) };
    const short = { kind: 'computed' as const, start: 100, texts: ['x'] };
    expect(elide([long, short], 10)).toEqual([
      { kind: 'reused', start: 0, texts: range(0, 10).map(String) },
      { kind: 'gap', of: 'reused', count: 80 },
      { kind: 'reused', start: 90, texts: range(90, 100).map(String) },
      short,
    ]);
  });
});
