/** The prompt doctor's logic: what was pasted, logs, and the model's view. */
import { describe, expect, it } from 'vitest';
import { DoctorLab } from '../../src/labs/doctor/lab';
import { examineLog } from '../../src/labs/doctor/log';
import { messagesOf, parseLog, parsePrompt } from '../../src/labs/doctor/parse';
import { SAMPLE_LOG, SAMPLES } from '../../src/labs/doctor/samples';
import { Engine } from '../fake-engine';

const messages = [{ role: 'user', content: 'Hi' }];
const signal = new AbortController().signal;

describe('a pasted prompt', () => {
  it.each([
    [JSON.stringify(messages), messages],
    [JSON.stringify({ messages, model: 'm' }), { messages, model: 'm' }],
    [JSON.stringify({ custom_id: '1', body: { messages } }), { messages }],
    ['It is 10:00.', 'It is 10:00.'],
    ['{ not JSON', '{ not JSON'],
    ['[1, 2]', '[1, 2]'],
  ])('%s is understood', (text, expected) => {
    expect(parsePrompt(text)).toEqual(expected);
  });

  it('has messages unless it is a text', () => {
    expect(messagesOf(messages)).toEqual(messages);
    expect(messagesOf({ messages })).toEqual(messages);
    expect(messagesOf('Hi')).toBeNull();
    expect(messagesOf({ prompt: 'Hi' })).toBeNull();
  });
});

describe('a log', () => {
  it('is a request a line; lines that are none are told', () => {
    const text = `${JSON.stringify({ messages })}\n\nnonsense\n${JSON.stringify({ body: { messages } })}\n{"x":1}\n`;
    const { entries, bad } = parseLog(text);
    expect(entries).toEqual([
      { line: 1, prompt: { messages } },
      { line: 4, prompt: { messages } },
    ]);
    expect(bad.map(({ line }) => line)).toEqual([3, 5]);
  });

  it('may be one list', () => {
    expect(parseLog(JSON.stringify([{ messages }, { prompt: 'a' }])).entries).toHaveLength(2);
  });

  it('compares each request with the one that it is most like, and adds up causes', async () => {
    const prompts = [
      'Rules. It is 10:00. Hello',
      'Something else',
      'Rules. It is 11:30. Hello',
      'Something else again',
    ];
    const entries = prompts.map((prompt, index) => ({ line: index + 1, prompt }));
    const { findings, causes, total, reused } = await examineLog(entries, signal);
    expect(findings.map(({ line, against }) => [line, against])).toEqual([
      [2, 1],
      [3, 1],
      [4, 2],
    ]);
    expect(causes.map(({ cause, count }) => [cause, count])).toContainEqual(['timestamp', 1]);
    expect(findings[2]?.found.cause).toBe('appended');
    expect(causes.some(({ cause }) => cause === 'appended')).toBe(false);
    expect(total).toBe(prompts.join('').length);
    expect(reused).toBe('Rules. It is 1'.length + 'Something else'.length);
  });

  it('can be stopped', async () => {
    await expect(examineLog(parseLog(SAMPLE_LOG).entries, AbortSignal.abort())).rejects.toThrow();
  });
});

describe('the lab', () => {
  it('shows where the prompts part in the model’s own tokens', async () => {
    const lab = new DoctorLab();
    const engine = (await Engine.load('smollm2-135m-instruct')) as never;
    await lab.take(SAMPLES[0] as never, engine);
    expect(lab.found.value?.cause).toBe('timestamp');
    const view = lab.model.value;
    const [a, b] = [view?.previous.ids ?? [], view?.next.ids ?? []];
    expect(view?.shared).toBeGreaterThan(0);
    expect(a.slice(0, view?.shared)).toEqual(b.slice(0, view?.shared));
    expect(a[view?.shared ?? 0]).not.toBe(b[view?.shared ?? 0]);
    expect(view?.next.runs.map(({ texts }) => texts.length)).toEqual([view?.shared, b.length - (view?.shared ?? 0)]);
  });

  it('needs no model for the rest', async () => {
    const lab = new DoctorLab();
    await lab.compare(null);
    expect([lab.found.value?.miss, lab.model.value]).toEqual([true, null]);
    lab.next.value = '';
    lab.previous.value = '';
    await lab.examine();
    expect(lab.report.value?.findings).toHaveLength(5);
  });

  it('has samples that are what they say', () => {
    for (const { previous, next } of SAMPLES) {
      expect(messagesOf(parsePrompt(previous))).not.toBeNull();
      expect(messagesOf(parsePrompt(next))).not.toBeNull();
    }
  });
});
