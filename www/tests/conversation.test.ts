import { describe, expect, it } from 'vitest';
import { nextAnnouncement } from '../src/chat/announcer';
import { NEW_ANSWER, newTurn, type Turn, toMessages, updateAnswer } from '../src/chat/turns';

function turn(question: string, text: string): Turn {
  const made = newTurn(question);
  updateAnswer(made, { status: 'done', text });
  return made;
}

describe('toMessages', () => {
  it('ends with the last question, whatever its old answer was', () => {
    expect(toMessages([turn('a', 'b'), turn('c', 'old')], '')).toEqual([
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'c' },
    ]);
  });

  it('puts the system prompt first and leaves out an empty one', () => {
    expect(toMessages([turn('a', '')], 'Be brief.')[0]).toEqual({ role: 'system', content: 'Be brief.' });
    expect(toMessages([turn('a', '')], '  \n')).toHaveLength(1);
  });

  it('alternates although a question got no answer', () => {
    const roles = toMessages([turn('a', 'b'), turn('failed', ''), turn('c', '')], '').map(({ role }) => role);
    expect(roles).toEqual(['user', 'assistant', 'user']);
  });
});

describe('nextAnnouncement', () => {
  const blocks = ['One.', 'Two.', 'Thr'].map((text) => ({ source: text, html: text, text }));

  it('says once that an answer begins', () => {
    expect(nextAnnouncement(NEW_ANSWER, 0, '')).toBe('Answering');
    expect(nextAnnouncement(NEW_ANSWER, 0, 'waiting')).toBe('');
  });

  it('leaves out the paragraph that still grows and those said before', () => {
    const streaming = { ...NEW_ANSWER, status: 'streaming' as const, blocks };
    expect(nextAnnouncement(streaming, 0, 'waiting')).toBe('One.\nTwo.');
    expect(nextAnnouncement(streaming, 1, 'streaming')).toBe('Two.');
    expect(nextAnnouncement(streaming, 2, 'streaming')).toBe('');
  });

  it('says the rest and how it ended, once', () => {
    const done = { ...NEW_ANSWER, status: 'done' as const, blocks };
    expect(nextAnnouncement(done, 2, 'streaming')).toBe('Thr\nEnd of answer.');
    expect(nextAnnouncement(done, 3, 'done')).toBe('');
    expect(nextAnnouncement({ ...done, status: 'stopped' }, 3, 'streaming')).toBe('Stopped.');
  });
});
