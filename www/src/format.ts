/** Numbers as people read them. Decimal units (1 MB = 1,000,000 bytes), as browsers and model hubs show downloads. */

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** `98_100_000` as "98.1 MB". */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit] ?? 'B'}`;
}

/** `75` as "1 min 15 s". */
export function formatSeconds(seconds: number): string {
  if (!Number.isFinite(seconds)) return '';
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 === 0 ? `${minutes} min` : `${minutes} min ${whole % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Milliseconds as "420 ms" or "3.2 s". */
export function formatMs(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : formatSeconds(ms / 1000);
}

/** Tokens per second: one decimal below 100, more where the number is small. */
export function formatRate(tokensPerS: number): string {
  const digits = tokensPerS >= 100 ? 0 : tokensPerS >= 1 ? 1 : 2;
  return `${tokensPerS.toFixed(digits)} tokens/s`;
}

/** `1024` as "1,024". */
export function formatCount(count: number): string {
  return count.toLocaleString('en');
}
