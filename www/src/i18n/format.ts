/**
 * Numbers, sizes, times and dates as the visitor's language writes them. Decimal units (1 MB = 1,000,000 bytes), as browsers
 * and model hubs show downloads; units keep their symbols in every language.
 */
import { LANG_INFO, type Lang, lang } from './lang';

const numberFormats = new Map<string, Intl.NumberFormat>();
const dateFormats = new Map<string, Intl.DateTimeFormat>();

/** A number with this language's separators. */
export function formatNumber(value: number, options: Intl.NumberFormatOptions = {}): string {
  const key = `${lang.value} ${JSON.stringify(options)}`;
  const format = numberFormats.get(key) ?? new Intl.NumberFormat(tag(), options);
  numberFormats.set(key, format);
  return format.format(value);
}

/** A number with exactly `digits` decimals. */
export function formatFixed(value: number, digits: number): string {
  return formatNumber(value, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** `1024` as "1,024". */
export function formatCount(count: number): string {
  return formatNumber(count, { maximumFractionDigits: 0 });
}

/** `0.42` as "42%". */
export function formatPercent(share: number, digits = 0): string {
  return formatNumber(share, { style: 'percent', maximumFractionDigits: digits });
}

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
  return `${formatFixed(value, digits)} ${UNITS[unit] ?? 'B'}`;
}

/** `75` as "1 min 15 s". */
export function formatSeconds(seconds: number): string {
  if (!Number.isFinite(seconds)) return '';
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${formatCount(whole)} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return whole % 60 === 0 ? `${minutes} min` : `${minutes} min ${whole % 60} s`;
  return `${formatCount(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}

/** Milliseconds as "420 ms" or "3.2 s"; one decimal below 10 ms, one digit below 0.1 ms: what is not nothing is not 0. */
export function formatMs(ms: number): string {
  if (ms > 0 && ms < 0.095) return `${formatNumber(ms, { maximumSignificantDigits: 1 })} ms`;
  if (ms < 1000) return `${ms > 0 && ms < 9.95 ? formatFixed(ms, 1) : formatCount(ms)} ms`;
  return ms < 60_000 ? `${formatFixed(ms / 1000, 1)} s` : formatSeconds(ms / 1000);
}

/** A rate's number: one decimal below 100, more where it is small. */
export function formatRateNumber(perS: number): string {
  return formatFixed(perS, perS >= 100 ? 0 : perS >= 1 ? 1 : 2);
}

/** A point in time: the hour today, the day before that. */
export function formatWhen(time: number, now: number = Date.now()): string {
  const date = dateOf(time);
  const isToday = date.toDateString() === new Date(now).toDateString();
  if (isToday) return dateFormat({ hour: 'numeric', minute: '2-digit' }).format(date);
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  return dateFormat({ day: 'numeric', month: 'short', ...(isThisYear ? {} : { year: 'numeric' }) }).format(date);
}

/** A point in time in full. */
export function formatDateTime(time: number): string {
  return dateFormat({ dateStyle: 'medium', timeStyle: 'short' }).format(dateOf(time));
}

/** A point in time for machines. */
export function isoTime(time: number): string {
  return dateOf(time).toISOString();
}

/** What is no date must not take the whole page with it. */
function dateOf(time: number): Date {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? new Date(0) : date;
}

function dateFormat(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${lang.value} ${JSON.stringify(options)}`;
  const format = dateFormats.get(key) ?? new Intl.DateTimeFormat(tag(), options);
  dateFormats.set(key, format);
  return format;
}

function tag(): string {
  const now: Lang = lang.value;
  return LANG_INFO[now].tag;
}
