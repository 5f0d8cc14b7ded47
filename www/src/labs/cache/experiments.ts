/**
 * The prepared experiments: requests to be sent one after the other, of which the first is cold. What to expect of the others
 * follows from their tokens alone; see expectation.ts.
 */
import type { ChatMessage } from 'pagewise';
import type { Writer } from './writer';

export const EXPERIMENTS = [
  'same',
  'time_first',
  'time_last',
  'reordered',
  'changed_word',
  'edited_turn',
  'branches',
  'service',
  'crowded',
] as const;
export type ExperimentId = (typeof EXPERIMENTS)[number];

const system = (content: string): ChatMessage => ({ role: 'system', content });
const user = (content: string): ChatMessage => ({ role: 'user', content });
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content });

/** A request of each, with about `tokens` tokens in the longest. */
type Build = (writer: Writer, tokens: number) => ChatMessage[][];

const BUILD: Readonly<Record<ExperimentId, Build>> = {
  same: (writer, tokens) => {
    const rules = system(writer.text('rules', tokens * 0.85));
    return [
      [rules, user('Where is my lamp?')],
      [rules, user('Can I return a tent?')],
    ];
  },
  time_first: (writer, tokens) => {
    const rules = writer.text('rules', tokens * 0.85);
    const at = (time: string): ChatMessage => system(`It is ${time}. ${rules}`);
    return [
      [at('10:00:00'), user('Where is my lamp?')],
      [at('14:27:31'), user('Where is my lamp?')],
    ];
  },
  time_last: (writer, tokens) => {
    const rules = system(writer.text('rules', tokens * 0.85));
    const at = (time: string): ChatMessage => user(`Where is my lamp? It is ${time}.`);
    return [
      [rules, at('10:00:00')],
      [rules, at('14:27:31')],
    ];
  },
  reordered: (writer, tokens) => {
    const part = (from: number): string => writer.text('article', tokens * 0.28, from);
    const [a, b, c] = [part(0), part(100), part(200)];
    const question = user('Which of them is sent from Oslo?');
    return [
      [system([a, b, c].join('\n\n')), question],
      [system([a, c, b].join('\n\n')), question],
    ];
  },
  changed_word: (writer, tokens) => {
    const [before, after] = [writer.text('article', tokens * 0.42), writer.text('article', tokens * 0.42, 100)];
    const with_ = (word: string): ChatMessage => user(`${before} The parcel is ${word}. ${after}`);
    return [[with_('blue')], [with_('green')]];
  },
  edited_turn: (writer, tokens) => {
    const rules = system(writer.text('rules', tokens * 0.4));
    const turns = (second: string): ChatMessage[] => [
      rules,
      user(writer.text('question', tokens * 0.1)),
      assistant(writer.text('answer', tokens * 0.12)),
      user(second),
      assistant(writer.text('answer', tokens * 0.18, 50)),
      user('And when does it arrive?'),
    ];
    return [turns('Please send the kettle to Lyon.'), turns('Please send the radio to Graz.')];
  },
  branches: (writer, tokens) => {
    const history = [
      system(writer.text('rules', tokens * 0.5)),
      user(writer.text('question', tokens * 0.12)),
      assistant(writer.text('answer', tokens * 0.18)),
    ];
    return ['Can I return it?', 'How long is the warranty?', 'Who pays for the parcel?'].map((question) => [
      ...history,
      user(question),
    ]);
  },
  service: (writer, tokens) => {
    // 2,000 tokens of rules, 8,000 of knowledge, 5,000 of history and 500 of question, in proportion.
    const part = (share: number): number => (tokens * 0.92 * share) / 15_500;
    const base = system(`${writer.text('rules', part(2000))}\n\n${writer.text('article', part(8000))}`);
    const talk = (from: number): ChatMessage[] => [
      user(writer.text('question', part(2500), from)),
      assistant(writer.text('answer', part(2500), from)),
    ];
    const question = (from: number): ChatMessage => user(writer.text('question', part(500), from));
    return [
      [base, ...talk(0), question(300)],
      // The same customer's next question, and another customer.
      [base, ...talk(0), question(400)],
      [base, ...talk(500), question(600)],
    ];
  },
  crowded: (writer, tokens) => {
    const about = (from: number): ChatMessage[] => [
      system(writer.text('article', tokens * 0.9, from)),
      user('Which of them is sent from Oslo?'),
    ];
    // The pool has room for two of them.
    return [about(0), about(100), about(200), about(0)];
  },
};

/** The requests of an experiment. */
export function requestsOf(id: ExperimentId, writer: Writer, tokens: number): ChatMessage[][] {
  return BUILD[id](writer, tokens);
}
