/** The `t` of the frame, and what needs words and numbers together. */
import { translator } from '.';
import { core as en } from './en/core';
import { formatRateNumber } from './format';
import { core as zh } from './zh/core';

export const t = translator(en, zh);

/** Tokens per second. */
export function formatRate(tokensPerS: number): string {
  return t('rate', { rate: formatRateNumber(tokensPerS) });
}
