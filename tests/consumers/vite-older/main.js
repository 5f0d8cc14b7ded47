import { Engine } from 'pagewise';

// Built for browsers without an await at the top level.
Engine.load('/models/tiny-llama-f16.gguf', { contextLength: 64, autotune: false }).then((engine) => {
  globalThis.engine = engine;
});
