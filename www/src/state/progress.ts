/** Speed and time left of a download, from the byte counts it reports. */

/** Only this much of the recent past counts, so that the estimate follows the network. */
const WINDOW_MS = 5000;
/** No estimate before this much was seen: the first moments say little. */
const MIN_SPAN_MS = 800;

export interface Pace {
  /** Bytes per second, or null while too little was seen. */
  readonly bytesPerS: number | null;
  /** Seconds until all bytes are there, or null while unknown. */
  readonly secondsLeft: number | null;
}

/** Estimates pace; time enters as a number so that tests need no clock. */
export class PaceMeter {
  private samples: { timeMs: number; bytes: number }[] = [];

  /** Takes one report and says how fast it goes now. */
  update(bytes: number, totalBytes: number | null, timeMs: number): Pace {
    const last = this.samples.at(-1);
    // Fewer bytes than before is a new attempt.
    if (last && bytes < last.bytes) this.samples = [];
    this.samples.push({ timeMs, bytes });
    while (this.samples.length > 2 && timeMs - (this.samples[1]?.timeMs ?? timeMs) > WINDOW_MS) this.samples.shift();
    const first = this.samples[0];
    if (!first || timeMs - first.timeMs < MIN_SPAN_MS) return { bytesPerS: null, secondsLeft: null };
    const bytesPerS = ((bytes - first.bytes) * 1000) / (timeMs - first.timeMs);
    const secondsLeft = totalBytes === null || bytesPerS <= 0 ? null : Math.max(0, totalBytes - bytes) / bytesPerS;
    return { bytesPerS, secondsLeft };
  }
}
