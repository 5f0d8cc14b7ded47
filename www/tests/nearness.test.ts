/** Which messages of a long conversation are drawn whole. */
import { describe, expect, it } from 'vitest';
import { groupsOf, isWhole } from '../src/chat/nearness';

const range = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

describe('groups of messages', () => {
  it('hold every message once, and stay the same while messages are added', () => {
    const before = groupsOf(range(20));
    const after = groupsOf(range(25));
    expect(before.flat()).toEqual(range(20));
    expect(after.slice(0, 2)).toEqual(before.slice(0, 2));
    expect(before.length).toBeLessThan(20);
    expect(groupsOf([])).toEqual([]);
  });

  it('become whole from the end that is come near to', () => {
    const whole = (num: number, isFromEnd: boolean): number[] =>
      range(5).filter((index) => isWhole({ num, isFromEnd }, index, 5));
    expect(whole(0, true)).toEqual([]);
    expect(whole(2, false)).toEqual([0, 1]);
    expect(whole(2, true)).toEqual([3, 4]);
    expect(whole(Number.POSITIVE_INFINITY, false)).toEqual(range(5));
  });
});
