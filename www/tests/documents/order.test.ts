/** Where passages stand: the prompts of each order, and what a cache makes of them. */
import { describe, expect, it } from 'vitest';
import { passagesText, type SourceRecord } from '../../src/documents/source';
import { type Asked, execute, messagesOf, ORDERS, prepare, totalsOf } from '../../src/labs/documents/order';
import { Engine } from '../fake-engine';

const source = (number: number, text: string): SourceRecord => ({
  ...{ number, title: `T${number}`, file: 'f.md', path: [], page: null, text },
  passage: text,
});
const asked: Asked[] = [
  { question: 'First question?', sources: [source(1, 'alpha beta gamma delta'), source(2, 'one two three four')] },
  { question: 'Second question?', sources: [source(1, 'uno due tre quattro')] },
  { question: 'Third question?', sources: [source(1, 'eins zwei drei vier')] },
];
const load = async (): Promise<never> => (await Engine.load('smollm2-135m-instruct', { contextLength: 2048 })) as never;

describe('the prompts', () => {
  const [rules, answers] = ['The rules.', ['A1', 'A2', 'A3']];

  it('have the passages in front, or behind what stays', () => {
    const first = messagesOf('first', asked, rules, answers);
    expect(first[1]).toEqual([
      { role: 'system', content: `${passagesText(asked[1]?.sources ?? [])}\n\nThe rules.` },
      { role: 'user', content: 'Second question?' },
    ]);
    const after = messagesOf('after', asked, rules, answers);
    expect(after.map(([system]) => system)).toEqual(Array(3).fill({ role: 'system', content: rules }));
    expect(after[1]?.[1]?.content).toBe(`${passagesText(asked[1]?.sources ?? [])}\n\nSecond question?`);
  });

  it('of a conversation keep the passages of earlier turns, or do not', () => {
    const kept = messagesOf('kept', asked, rules, answers);
    // Each begins with all of the one before.
    for (const at of [1, 2]) expect(kept[at]?.slice(0, kept[at - 1]?.length)).toEqual(kept[at - 1]);
    const moved = messagesOf('moved', asked, rules, answers);
    expect(moved[2]?.map(({ content }) => String(content).includes('Passages'))).toEqual([
      ...[false, false, false, false, false],
      true,
    ]);
  });
});

describe('an experiment', () => {
  it.each(['questions', 'turns'] as const)('of %s measures what was expected of both orders', async (id) => {
    const engine = await load();
    const prepared = await prepare(engine, id, asked, 400);
    expect(prepared.map(({ order }) => order)).toEqual(ORDERS[id]);
    const runs = await execute(engine, prepared, () => undefined, new AbortController().signal);
    for (const { requests } of runs) {
      expect(requests.map(({ measured }) => measured?.cachedTokens)).toEqual(
        requests.map(({ expected }) => expected.cachedTokens),
      );
      expect(requests.map(({ measured }) => measured?.promptTokens)).toEqual(requests.map(({ ids }) => ids.length));
    }
    const [bad, good] = runs.map(totalsOf);
    expect(good?.cached).toBeGreaterThan((id === 'questions' ? 2 : 1.2) * (bad?.cached ?? 0));
    const [worse, better] = runs;
    if (id === 'questions') {
      // In front of everything but the role; behind the rules.
      expect(worse?.requests.map(({ passagesAt }) => passagesAt)).toEqual([1, 1, 1]);
      const at = better?.requests.map(({ passagesAt }) => passagesAt) ?? [];
      expect(new Set(at).size).toBe(1);
      expect(at[0]).toBeGreaterThan(100);
      // All that is in front of the passages is reused from the second question on.
      for (const one of better?.requests.slice(1) ?? []) {
        expect(one.measured?.cachedTokens).toBeGreaterThanOrEqual(one.passagesAt);
      }
    } else {
      const [, second, third] = better?.requests ?? [];
      expect(second?.measured?.cachedTokens).toBeGreaterThanOrEqual(better?.requests[0]?.ids.length ?? 0);
      expect(third?.measured?.cachedTokens).toBeGreaterThanOrEqual(second?.ids.length ?? 0);
      // Without its passages, the first turn is another one: no more than what is in front of them.
      const [before, changed] = worse?.requests ?? [];
      expect(changed?.measured?.cachedTokens).toBeLessThanOrEqual(before?.passagesAt ?? 0);
    }
  });

  it('cuts passages to the size that was asked for', async () => {
    const engine = await load();
    const long = [{ question: 'Q?', sources: [source(1, 'many words and more. '.repeat(400))] }];
    const [run] = await prepare(engine, 'questions', long, 300);
    expect(run?.requests[0]?.ids.length).toBeLessThan(360);
    expect(run?.requests[0]?.ids.length).toBeGreaterThan(200);
  });
});
