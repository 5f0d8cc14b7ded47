/**
 * Text to the terms that are searched. Words come from the browser's own segmenter, which knows languages without spaces; since
 * it may cut the same characters differently in a question and in a document, pairs of characters are terms of those as well.
 */

const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;
const WORD = /[\p{L}\p{N}]+/gu;

const segmenter = typeof Intl.Segmenter === 'function' ? new Intl.Segmenter(undefined, { granularity: 'word' }) : null;

/** Letters as they are compared: composed alike, without case and accents. */
function fold(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{Mn}/gu, '')
    .toLowerCase()
    .normalize('NFC');
}

/** The words of a text; a browser without a segmenter finds runs of letters. */
function wordsOf(text: string): string[] {
  if (!segmenter) return text.match(WORD) ?? [];
  return Array.from(segmenter.segment(text), ({ segment, isWordLike }) => (isWordLike ? segment : '')).filter(
    (word) => word !== '',
  );
}

/** The terms of a text, in its order, as often as they are there. */
export function termsOf(text: string): string[] {
  const terms: string[] = [];
  let run = '';
  const endRun = (): void => {
    const chars = [...run];
    for (let at = 0; at + 1 < chars.length; at += 1) terms.push(`${chars[at]}${chars[at + 1]}`);
    run = '';
  };
  for (const word of wordsOf(fold(text))) {
    if (!WIDE.test(word)) {
      endRun();
      terms.push(word);
      continue;
    }
    // The pairs hold words of two characters already.
    if ([...word].length !== 2) terms.push(word);
    run += word;
  }
  endRun();
  return terms;
}

/** Words that are in every question and say nothing about what is asked. */
const EMPTY_WORDS = new Set(
  (
    'a an and are as at be by can do does for from have how i in is it my of on or our that the their there this to was we ' +
    'what when where which who why will with you your 的 了 是 吗 呢 在 有 和 我 你 什么 怎么 如何 多少 哪些 哪里 为什么 请问'
  )
    .split(' ')
    .map(fold),
);

/** The terms of a question that are worth searching: all of them where there are no others. */
export function queryTermsOf(question: string): string[] {
  const terms = [...new Set(termsOf(question))];
  const telling = terms.filter((term) => !EMPTY_WORDS.has(term));
  return telling.length > 0 ? telling : terms;
}

/** Whether a term is of a script whose words are not parted by spaces. */
export function isWide(term: string): boolean {
  return WIDE.test(term);
}
