/** Pairs of requests to begin with: what goes wrong most often. */

/** A pair, as it would be pasted. */
export interface Sample {
  readonly id: 'timestamp' | 'tools' | 'history' | 'good';
  readonly previous: string;
  readonly next: string;
}

const RULES = 'You are a support agent of a shop. Be brief, be kind, and never promise a date. Refunds take 14 days.';
const write = (value: unknown): string => JSON.stringify(value, null, 2);
const tool = (name: string): object => ({ type: 'function', function: { name, parameters: { type: 'object' } } });

const turns = (first: string): object[] => [
  { role: 'system', content: RULES },
  { role: 'user', content: first },
  { role: 'assistant', content: 'It left our warehouse this morning.' },
  { role: 'user', content: 'When will it be here?' },
];

export const SAMPLES: readonly Sample[] = [
  {
    id: 'timestamp',
    previous: write([
      { role: 'system', content: `It is 2026-03-02 10:00:05. ${RULES}` },
      { role: 'user', content: 'Where is my lamp?' },
    ]),
    next: write([
      { role: 'system', content: `It is 2026-03-02 10:04:41. ${RULES}` },
      { role: 'user', content: 'Can I return a tent?' },
    ]),
  },
  {
    id: 'tools',
    previous: write({ tools: [tool('find_order'), tool('refund')], messages: turns('Where is my lamp?').slice(0, 2) }),
    next: write({ tools: [tool('refund'), tool('find_order')], messages: turns('Where is my lamp?').slice(0, 2) }),
  },
  { id: 'history', previous: write(turns('Where is my lamp?')), next: write(turns('Where is my lamp, please?')) },
  {
    id: 'good',
    previous: write(turns('Where is my lamp?')),
    next: write([
      ...turns('Where is my lamp?'),
      { role: 'assistant', content: 'Tomorrow, I think.' },
      { role: 'user', content: 'Thank you!' },
    ]),
  },
];

/** A log to begin with: a counter in front of everything, and one edited rule. */
export const SAMPLE_LOG = [1, 2, 3, 4]
  .map((ticket) => [
    { role: 'system', content: `Ticket #${1040 + ticket}. ${RULES}` },
    { role: 'user', content: `Question ${ticket}: where is it?` },
  ])
  .concat(
    [1, 2].map((day) => [
      { role: 'system', content: `${RULES} Day ${day}.` },
      { role: 'user', content: 'Hello' },
    ]),
  )
  .map((messages) => JSON.stringify({ messages }))
  .join('\n');
