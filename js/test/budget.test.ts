import { describe, expect, test } from 'vitest';
import {
  type BudgetOptions,
  type ChatRequestMessage,
  ConversationBudget,
  type ConversationSummary,
  type FittedPrompt,
  PagewiseError,
  type SummaryRequest,
} from '../src/index.js';

/** One token a letter, and two a message, as a template would add. */
const countTokens = (messages: readonly ChatRequestMessage[]): number =>
  messages.reduce((sum, { content }) => sum + (content ?? '').length + 2, 0);

const system: ChatRequestMessage = { role: 'system', content: 'Be kind to everybody.' };

const summary = (text: string): ConversationSummary => ({
  conversation_summary: text,
  user_profile: 'u',
  task_state: 't',
});

/** A generator of numbers from 0 to below `most`, the same for the same seed. */
function random(seed: number): (most: number) => number {
  let state = seed * 2654435761 + 1;
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

/** A conversation that grows turn by turn, and what the budget made of each request of it. */
async function converse(
  options: Partial<BudgetOptions>,
  { seed = 1, turns = 100, longest = 40 } = {},
): Promise<{ conversation: ChatRequestMessage[]; fitted: FittedPrompt[]; asked: SummaryRequest[] }> {
  const next = random(seed);
  const asked: SummaryRequest[] = [];
  const summarize = async (request: SummaryRequest) => {
    asked.push(request);
    return summary(`${asked.length}`);
  };
  const budget = new ConversationBudget({ contextTokens: 1200, answerTokens: 200, countTokens, summarize, ...options });
  const conversation: ChatRequestMessage[] = [system];
  const fitted: FittedPrompt[] = [];
  const text = (turn: number): string => `${turn}${'x'.repeat(1 + next(longest))}`;
  for (let turn = 0; turn < turns; turn += 1) {
    conversation.push({ role: 'user', content: text(turn) });
    fitted.push(await budget.fit(conversation));
    conversation.push({ role: 'assistant', content: text(turn) });
  }
  return { conversation, fitted, asked };
}

const numShared = (a: readonly ChatRequestMessage[], b: readonly ChatRequestMessage[]): number => {
  const at = a.findIndex((message, index) => JSON.stringify(message) !== JSON.stringify(b[index]));
  return at < 0 ? a.length : at;
};

describe.each(['drop_oldest_turns', 'summarize'] as const)('%s', (overflow) => {
  test.each(Array.from({ length: 20 }, (_, seed) => seed))('holds its promises (seed %d)', async (seed) => {
    const next = random(seed + 1000);
    const keepTurns = 1 + next(4);
    const cutTo = 0.4 + next(6) / 10;
    const { conversation, fitted, asked } = await converse({ overflow, keepTurns, cutTo }, { seed });
    const dropped: ChatRequestMessage[] = [];
    for (const [turn, prompt] of fitted.entries()) {
      const history = conversation.slice(0, 2 * turn + 2);
      expect(prompt.promptTokens).toBe(countTokens(prompt.messages));
      expect(prompt.promptTokens).toBeLessThanOrEqual(1000);
      expect(prompt.messages[0]).toEqual(system);
      // Never silent: what was sent and what was said to be dropped are the whole conversation, in order.
      dropped.push(...(prompt.cut?.messages ?? []));
      expect(prompt.numReplaced).toBe(dropped.length);
      const numStanding = prompt.summary ? 2 : 0;
      expect([system, ...dropped, ...prompt.messages.slice(1 + numStanding)]).toEqual(history);
      expect(prompt.summary !== null).toBe(overflow === 'summarize' && dropped.length > 0);
      const kept = history.slice(Math.max(1, history.length - 2 * keepTurns + 1));
      expect(prompt.messages.slice(-kept.length)).toEqual(kept);
      // What is said to hit is what is equal, and without a cut that is everything that was sent or answered.
      const last = fitted[turn - 1]?.messages ?? [];
      const shared = numShared(last, prompt.messages);
      const withAnswer = shared + Number(shared > 0 && shared === last.length);
      expect(prompt.reusedTokens).toBe(countTokens(prompt.messages.slice(0, withAnswer)));
      if (turn > 0 && !prompt.cut) expect(prompt.messages.length - withAnswer).toBe(1);
    }
    const cuts = fitted.filter(({ cut }) => cut);
    expect(cuts.length).toBeGreaterThan(0);
    if (overflow === 'drop_oldest_turns') return;
    // Every message is summarised once, and each summary builds on the one before.
    expect(asked.flatMap(({ messages }) => messages)).toEqual(dropped);
    expect(asked.map(({ previous }) => previous?.conversation_summary ?? null)).toEqual(
      asked.map((_, index) => (index === 0 ? null : `${index}`)),
    );
  });

  test('cuts in steps: a prefix lives for many turns', async () => {
    const { fitted } = await converse({ overflow, cutTo: 0.5 }, { turns: 200, longest: 20 });
    const at = fitted.flatMap(({ cut }, turn) => (cut ? [turn] : []));
    const gaps = at.slice(1).map((turn, index) => turn - (at[index] as number));
    // A turn has at most 50 tokens; from 500 to 1000, less a summary's room, takes at least 8 of them.
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(8);
    const everyTurn = await converse({ overflow, cutTo: 1, summaryTokens: 200 }, { turns: 200, longest: 20 });
    const reused = (all: FittedPrompt[]) =>
      all.reduce((sum, { reusedFraction }) => sum + reusedFraction, 0) / all.length;
    expect(reused(fitted)).toBeGreaterThan(0.8);
    if (overflow === 'drop_oldest_turns') expect(reused(fitted)).toBeGreaterThan(reused(everyTurn.fitted) + 0.3);
  });

  test('what was cut and is edited afterwards begins anew', async () => {
    const budget = new ConversationBudget({
      contextTokens: 200,
      answerTokens: 20,
      countTokens,
      overflow,
      keepTurns: 1,
      summaryTokens: 60,
      renderSummary: ({ conversation_summary }) => [{ role: 'user', content: conversation_summary }],
      summarize: async ({ previous }) => summary(previous ? 'second' : 'first'),
    });
    const say = (content: string): ChatRequestMessage => ({ role: 'user', content });
    const long = [system, say('a'.repeat(90)), say('b'.repeat(90)), say('c')];
    expect((await budget.fit(long)).numReplaced).toBeGreaterThan(0);
    const edited = await budget.fit([system, say('A'), say('d')]);
    expect(edited).toMatchObject({ numReplaced: 0, summary: null, cut: null });
    expect(edited.messages).toEqual([system, say('A'), say('d')]);
    expect(edited.reusedTokens).toBe(countTokens([system]));
  });

  test('the last turns are not cut, even when they do not fit', async () => {
    const budget = new ConversationBudget({
      contextTokens: 100,
      answerTokens: 20,
      countTokens,
      overflow,
      summarize: async () => summary(''),
    });
    const messages: ChatRequestMessage[] = [system, { role: 'user', content: 'x'.repeat(90) }];
    await expect(budget.fit(messages)).rejects.toMatchObject({
      code: 'context_too_long',
      message: expect.stringMatching(/last 2 turns takes 115 tokens, 80 allowed beside 20/),
    });
  });
});

describe('what does not fit the types', () => {
  const options = { contextTokens: 100, answerTokens: 20, countTokens };

  test.each<[object, RegExp]>([
    [{ contextTokens: '100' }, /contextTokens.*"100" given/],
    [{ contextTokens: Number.NaN }, /contextTokens/],
    [{ answerTokens: undefined }, /answerTokens/],
    [{ countTokens: undefined }, /countTokens is needed/],
    [{ countTokens: 5 }, /countTokens: a function/],
    [{ summarise: () => undefined }, /summarise is not supported/],
    [{ cachesAnswers: 'yes' }, /cachesAnswers: true or false/],
    [{ overflow: 'drop' }, /overflow: .*drop_oldest_turns.*"drop" given/],
  ])('is refused by name: %j', (change, message) => {
    const make = (): unknown => new ConversationBudget({ ...options, ...change } as BudgetOptions);
    expect(make).toThrow(PagewiseError);
    expect(make).toThrow(message);
  });

  test('an option that is undefined has its default', async () => {
    const budget = new ConversationBudget({ ...options, overflow: undefined, keepTurns: undefined } as never);
    expect((await budget.fit([system])).promptTokens).toBe(countTokens([system]));
  });

  test.each([[undefined], [null], ['Hi'], [[null]], [[system, undefined]]])('is no conversation: %j', async (given) => {
    const fitted = new ConversationBudget(options).fit(given as never);
    await expect(fitted).rejects.toMatchObject({ code: 'bad_request' });
  });
});

describe('the default', () => {
  test('is an error with both numbers, and nothing is cut', async () => {
    const { fitted } = await converse({}, { turns: 5 });
    expect(fitted.every(({ cut }) => cut === null)).toBe(true);
    await expect(converse({}, { turns: 200 })).rejects.toMatchObject({
      code: 'context_too_long',
      message: expect.stringMatching(/takes 10\d\d tokens, 1000 allowed/),
    });
  });
});

describe('summaries', () => {
  const options = { contextTokens: 400, answerTokens: 20, countTokens, overflow: 'summarize', keepTurns: 1 } as const;
  const messages: ChatRequestMessage[] = [
    system,
    { role: 'user', content: 'a'.repeat(300) },
    { role: 'assistant', content: 'b'.repeat(80) },
    { role: 'user', content: 'c' },
  ];

  test('a failure changes nothing, and the next call tries again', async () => {
    let fails = true;
    const summarize = async () => {
      if (fails) throw new Error('busy');
      return summary('s');
    };
    const renderSummary = () => [{ role: 'user', content: 's' }] as const;
    const budget = new ConversationBudget({ ...options, summarize, renderSummary });
    await expect(budget.fit(messages)).rejects.toThrow('busy');
    fails = false;
    const [fitted, again] = await Promise.all([budget.fit(messages), budget.fit(messages)]);
    expect(fitted.cut?.messages).toEqual(messages.slice(1, 3));
    expect(again).toMatchObject({ cut: null, numReplaced: 2, reusedFraction: 1 });
  });

  test('one that is too long, or no summary, is an error', async () => {
    const long = new ConversationBudget({ ...options, summarize: async () => summary('x'.repeat(500)) });
    await expect(long.fit(messages)).rejects.toMatchObject({ code: 'context_too_long' });
    const none = new ConversationBudget({ ...options, summarize: async () => ({}) as ConversationSummary });
    await expect(none.fit(messages)).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('are a turn of their own with all three parts', async () => {
    const budget = new ConversationBudget({ ...options, summarize: async () => summary('s') });
    const { messages: sent } = await budget.fit(messages);
    expect(sent.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
    for (const key of ['conversation_summary', 'user_profile', 'task_state']) {
      expect(sent[1]?.content).toContain(`<${key}>\n`);
    }
  });
});

test.each([
  { contextTokens: 100, answerTokens: 100 },
  { contextTokens: Number.NaN, answerTokens: 1 },
  { keepTurns: 0 },
  { cutTo: 0 },
  { cutTo: 1.5 },
  { summaryTokens: -1 },
  { overflow: 'summarize' },
  { overflow: 'truncate' },
])('refuses %o', (options) => {
  const make = () =>
    new ConversationBudget({ contextTokens: 100, answerTokens: 10, countTokens, ...(options as object) });
  expect(make).toThrow(expect.objectContaining({ code: 'bad_request' }));
});

test.each([undefined, null, 3, [], new Map()])('refuses %o instead of options', (options) => {
  const make = () => new ConversationBudget(options as never);
  expect(make).toThrow(expect.objectContaining({ code: 'bad_request' }));
});
