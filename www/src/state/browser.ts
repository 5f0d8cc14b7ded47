/** Which browser this is, only to choose the wording of advice; no behaviour depends on it. */

export type BrowserName = 'chrome' | 'edge' | 'firefox' | 'safari' | 'other';
export type SystemName = 'windows' | 'macos' | 'linux' | 'android' | 'ios' | 'other';

export interface Browser {
  readonly name: BrowserName;
  readonly system: SystemName;
}

/** Reads a user agent string. `touchPoints` tells an iPad, which calls itself a Mac, from a Mac. */
export function detectBrowser(userAgent: string, touchPoints = 0): Browser {
  return { name: browserName(userAgent), system: systemName(userAgent, touchPoints) };
}

function browserName(agent: string): BrowserName {
  if (/\bEdgA?\//.test(agent)) return 'edge';
  if (/\b(Firefox|FxiOS)\//.test(agent)) return 'firefox';
  if (/(Chrome|Chromium|CriOS)\//.test(agent)) return 'chrome';
  return /\bSafari\//.test(agent) ? 'safari' : 'other';
}

function systemName(agent: string, touchPoints: number): SystemName {
  if (/iPhone|iPad|iPod/.test(agent)) return 'ios';
  if (/Android/.test(agent)) return 'android';
  if (/Windows/.test(agent)) return 'windows';
  if (/Macintosh/.test(agent)) return touchPoints > 1 ? 'ios' : 'macos';
  return /Linux|CrOS|X11/.test(agent) ? 'linux' : 'other';
}

/** Whether a model can run here, as far as the page itself can see before loading one. */
export type GpuCheck =
  | { readonly kind: 'checking' }
  | { readonly kind: 'ok' }
  /** The page came over plain http, where browsers hide WebGPU. */
  | { readonly kind: 'insecure' }
  | { readonly kind: 'no_webgpu' }
  /** WebGPU is there and found no GPU it may use. */
  | { readonly kind: 'no_adapter' };

interface GpuLike {
  requestAdapter(): Promise<unknown>;
}

/** Asks the browser for a GPU. Never throws. */
export async function checkGpu(
  gpu: GpuLike | undefined = (navigator as Navigator & { gpu?: GpuLike }).gpu,
  secure: boolean = isSecureContext,
): Promise<GpuCheck> {
  if (!gpu) return { kind: secure ? 'no_webgpu' : 'insecure' };
  try {
    return { kind: (await gpu.requestAdapter()) ? 'ok' : 'no_adapter' };
  } catch {
    return { kind: 'no_adapter' };
  }
}
