/** Models that people know, by the numbers that their memory depends on; from their published configurations. */

/** A model's numbers. */
export interface ModelPreset {
  readonly id: string;
  readonly name: string;
  readonly parameters: number;
  readonly numLayers: number;
  /** Layers that see only a window, and its tokens. */
  readonly sliding?: { readonly numLayers: number; readonly window: number };
  readonly kvHeads: number;
  /** Heads of queries: those of keys and values are shared among them. */
  readonly heads: number;
  readonly headDim: number;
  /** Tokens that it was made for. */
  readonly contextLength: number;
}

/** From the smallest to the largest. */
export const PRESETS: readonly ModelPreset[] = [
  {
    id: 'smollm2-135m',
    name: 'SmolLM2 135M',
    parameters: 134.5e6,
    numLayers: 30,
    heads: 9,
    kvHeads: 3,
    headDim: 64,
    contextLength: 8192,
  },
  {
    id: 'gemma3-270m',
    name: 'Gemma 3 270M',
    parameters: 268e6,
    numLayers: 18,
    sliding: { numLayers: 15, window: 512 },
    heads: 4,
    kvHeads: 1,
    headDim: 256,
    contextLength: 32_768,
  },
  {
    id: 'smollm2-1.7b',
    name: 'SmolLM2 1.7B',
    parameters: 1.71e9,
    numLayers: 24,
    heads: 32,
    kvHeads: 32,
    headDim: 64,
    contextLength: 8192,
  },
  {
    id: 'llama3.2-1b',
    name: 'Llama 3.2 1B',
    parameters: 1.24e9,
    numLayers: 16,
    heads: 32,
    kvHeads: 8,
    headDim: 64,
    contextLength: 131_072,
  },
  {
    id: 'gemma3-1b',
    name: 'Gemma 3 1B',
    parameters: 1e9,
    numLayers: 26,
    sliding: { numLayers: 22, window: 512 },
    heads: 4,
    kvHeads: 1,
    headDim: 256,
    contextLength: 32_768,
  },
  {
    id: 'qwen2.5-7b',
    name: 'Qwen2.5 7B',
    parameters: 7.62e9,
    numLayers: 28,
    heads: 28,
    kvHeads: 4,
    headDim: 128,
    contextLength: 131_072,
  },
  {
    id: 'llama3.1-8b',
    name: 'Llama 3.1 8B',
    parameters: 8.03e9,
    numLayers: 32,
    heads: 32,
    kvHeads: 8,
    headDim: 128,
    contextLength: 131_072,
  },
  {
    id: 'llama2-13b',
    name: 'Llama 2 13B',
    parameters: 13.02e9,
    numLayers: 40,
    heads: 40,
    kvHeads: 40,
    headDim: 128,
    contextLength: 4096,
  },
  {
    id: 'qwen2.5-32b',
    name: 'Qwen2.5 32B',
    parameters: 32.8e9,
    numLayers: 64,
    heads: 40,
    kvHeads: 8,
    headDim: 128,
    contextLength: 131_072,
  },
  {
    id: 'llama3.3-70b',
    name: 'Llama 3.3 70B',
    parameters: 70.6e9,
    numLayers: 80,
    heads: 64,
    kvHeads: 8,
    headDim: 128,
    contextLength: 131_072,
  },
];

/** The preset of an id; the first where there is none. */
export function presetOf(id: string): ModelPreset {
  const found = PRESETS.find((preset) => preset.id === id) ?? PRESETS[0];
  if (!found) throw new Error('there are no presets');
  return found;
}
