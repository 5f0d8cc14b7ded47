/** Search, in English and Chinese, and what of a large library goes into a prompt. */
import { describe, expect, it } from 'vitest';
import type { Found } from '../../src/documents/library';
import type { PassageRecord } from '../../src/documents/records';
import { type Retrieval, retrieve, roomFor } from '../../src/documents/retrieve';
import { PassageIndex } from '../../src/documents/search';
import { passagesText, type SourceRecord, toSource, withSources } from '../../src/documents/source';
import { queryTermsOf, termsOf } from '../../src/documents/tokenizer';

let numMade = 0;
function passage(text: string, title = 'Title', path: string[] = [title], hash = text): PassageRecord {
  numMade += 1;
  const place = { path, page: null, file: 'f.md', document: 'd', size: 1 };
  return { id: `d/${numMade}`, index: numMade, title, text, hash, ...place };
}

async function indexOf(...passages: PassageRecord[]): Promise<PassageIndex> {
  const index = new PassageIndex();
  await index.add(passages);
  return index;
}

describe('terms', () => {
  it('are folded words', () => {
    expect(termsOf('Größe, CAFÉ and ２ Ｂ')).toEqual(['große', 'cafe', 'and', '2', 'b']);
  });

  it('of Chinese are words and pairs, so that another cut of the same characters is found', () => {
    const terms = termsOf('保修期内的自行车');
    for (const pair of ['保修', '修期', '自行', '行车']) expect(terms).toContain(pair);
    expect(queryTermsOf('自行车')).toEqual(expect.arrayContaining(['自行', '行车']));
  });

  it('of a question leave out what says nothing, but not all', () => {
    expect(queryTermsOf('What is the warranty of it?')).toEqual(['warranty']);
    expect(queryTermsOf('What is it?')).toEqual(['what', 'is', 'it']);
  });
});

describe('search', () => {
  it('puts the passage in front that has the rarer words, and titles count more', async () => {
    const [lamp, tent, other] = [
      passage('A lamp has two years of warranty.', 'Lamps'),
      passage('It can be returned within 14 days.', 'Tents'),
      passage('A tent may stand near the years of a lamp.', 'Odds'),
    ];
    const index = await indexOf(lamp, tent, other);
    expect(index.search('How long is the warranty of a lamp?', 5)[0]?.id).toBe(lamp.id);
    expect(index.search('tents', 5)[0]?.id).toBe(tent.id);
    // By the beginning of a word, and with a letter that is wrong.
    expect(index.search('warran', 5)[0]?.id).toBe(lamp.id);
    expect(index.search('waranty', 5)[0]?.id).toBe(lamp.id);
    expect(index.search('zeppelin', 5)).toEqual([]);
    expect(index.search('', 5)).toEqual([]);
  });

  it('finds Chinese in questions that no space parts', async () => {
    const [bike, tent] = [
      passage('保修期内的自行车由 4 号码头的工坊修理，期间可借用另一辆。', '维修'),
      passage('使用过的帐篷如果干燥整洁，可在 14 天内退货。', '期限'),
    ];
    const index = await indexOf(bike, tent);
    expect(index.search('请问自行车坏了怎么办？', 5).map(({ id }) => id)).toEqual([bike.id]);
    expect(index.search('帐篷多久可以退货', 5)[0]?.id).toBe(tent.id);
  });

  it('finds the same text once', async () => {
    const index = await indexOf(passage('same', 'A', [], 'h'), passage('same', 'B', [], 'h'));
    expect(index.size).toBe(1);
    expect(index.search('same', 5)).toHaveLength(1);
  });
});

describe('what goes with a question', () => {
  const count = async (text: string): Promise<number> => text.match(/\S+/g)?.length ?? 0;
  const base: Omit<Retrieval, 'search'> = {
    question: 'How long is the warranty of a lamp?',
    earlier: [],
    keepsTurns: true,
    numPassages: 4,
    room: 500,
    count,
  };
  const finds =
    (...passages: PassageRecord[]): Retrieval['search'] =>
    async (_, limit) =>
      passages.slice(0, limit).map((one, index): Found => ({ id: one.id, score: 10 - index, passage: one }));

  it('is a few passages of a large library, within the room', async () => {
    const large = Array.from({ length: 5000 }, (_, index) =>
      passage(`Lamp ${index}: ${'the warranty of this lamp is two years and a day '.repeat(6)}`, `Lamp ${index}`),
    );
    const index = await indexOf(...large);
    const byId = new Map(large.map((one) => [one.id, one]));
    const search: Retrieval['search'] = async (question, limit) =>
      index.search(question, limit).map((hit) => ({ ...hit, passage: byId.get(hit.id) as PassageRecord }));
    for (const [numPassages, room] of [
      [8, 5000],
      [8, 300],
      [3, 5000],
    ] as const) {
      const sources = await retrieve({ ...base, search, numPassages, room });
      expect(sources.length).toBeGreaterThan(0);
      expect(sources.length).toBeLessThanOrEqual(numPassages);
      expect(await count(passagesText(sources))).toBeLessThanOrEqual(room);
    }
    expect(await retrieve({ ...base, search, room: 10 })).toEqual([]);
  });

  it('is numbered on through a conversation, and not sent twice', async () => {
    const [a, b, c] = [passage('a'), passage('b'), passage('c')];
    const first = await retrieve({ ...base, search: finds(a, b) });
    expect(first.map(({ number, text }) => [number, text])).toEqual([
      [1, 'a'],
      [2, 'b'],
    ]);
    const earlier = [{ text: 'q', sources: first }];
    const second = await retrieve({ ...base, search: finds(b, c, a), earlier });
    const named = second.map(({ number, text, isAbove = false }) => [number, text, isAbove]);
    expect(named).toEqual([
      [2, 'b', true],
      [3, 'c', false],
      [1, 'a', true],
    ]);
    // What is sent of those is their numbers.
    const sent = passagesText(second);
    expect(sent.match(/^\[\d+\] .*/gm)).toEqual(['[3] Title (f.md, Title)']);
    expect(sent).toContain('[2], [1] further up');
    // Where old turns may be left out, it is sent again, under the number it had.
    const again = await retrieve({ ...base, search: finds(b, c, a), earlier, keepsTurns: false });
    expect(again.map(({ number, text }) => [number, text])).toEqual([
      [2, 'b'],
      [3, 'c'],
      [1, 'a'],
    ]);
  });

  it('is searched with the question before, where this one is short', async () => {
    const asked: string[] = [];
    const search: Retrieval['search'] = async (question) => {
      asked.push(question);
      return [];
    };
    const earlier = [{ text: 'Who repairs lamps?', sources: [] }];
    await retrieve({ ...base, search, earlier, question: 'And stoves?' });
    await retrieve({ ...base, search, earlier });
    expect(asked).toEqual(['And stoves?\nWho repairs lamps?', base.question]);
  });

  it('leaves room for the answer', () => {
    expect(roomFor(100, 1000, 500)).toBe(500);
    expect(roomFor(600, 1000, 500)).toBe(150);
    expect(roomFor(990, 1000, 500)).toBe(0);
  });

  it('is written with number, title and place, the question last', () => {
    const source: SourceRecord = {
      ...toSource({ ...passage('Two years.', 'Lamps', ['Warranty', 'Lamps']), page: 3 }, 2),
    };
    const text = withSources('How long?', [source]);
    expect(text).toContain('[2] Lamps (f.md, page 3, Warranty > Lamps)\nTwo years.');
    expect(text.endsWith('\n\nHow long?')).toBe(true);
    expect(withSources('How long?', [])).toBe('How long?');
  });
});
