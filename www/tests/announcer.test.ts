import { describe, expect, it } from 'vitest';
import { nextAnnouncement } from '../src/chat/announcer';

const NEW_ANSWER = { status: 'waiting' as const, blocks: [] };

describe('nextAnnouncement', () => {
  const blocks = ['One.', 'Two.', 'Thr'].map((text) => ({ text }));

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
    expect(nextAnnouncement({ ...done, status: 'interrupted' }, 3, 'streaming')).toMatch(/^Interrupted/);
  });
});
