import { Engine, kvMemory } from 'pagewise';

// The worker and the WebAssembly module, without the time that kernels take to compile.
const [{ architecture }, { totalBytes }] = await Promise.all([
  Engine.inspect('/models/tiny-llama-f16.gguf'),
  kvMemory({ numLayers: 1, kvHeads: 1, headDim: 2, contextLength: 16 }),
]);
globalThis.found = { architecture, totalBytes };
