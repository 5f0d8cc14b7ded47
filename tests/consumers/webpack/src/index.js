import { Engine, kvMemory } from 'pagewise';

Object.assign(globalThis, { Engine, kvMemory });
globalThis.engine = await Engine.load('/models/tiny-llama-f16.gguf', {
  contextLength: 64,
  autotune: false,
  share: true,
});
