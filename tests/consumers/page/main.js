import { Engine, kvMemory } from '/node_modules/pagewise/dist/index.js';

Object.assign(globalThis, { Engine, kvMemory });
globalThis.engine = await Engine.load('/models/tiny-llama-f16.gguf', { contextLength: 64, autotune: false });
