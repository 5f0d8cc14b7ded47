// Decodes with one and with several sequences, and notes what handing each step to the GPU took.
import { Engine } from '/js/dist/index.js';

globalThis.bench = {
  /** Of each number of sequences: milliseconds of the steps in which all of them decode, and nothing else. */
  async run(source, sequences, numTokens) {
    const engine = await Engine.load(source, { contextLength: 1024, stepTargetMs: null });
    try {
      let steps = [];
      engine.onStep((step) => steps.push(step));
      const rows = [];
      for (const num of sequences) {
        steps = [];
        const ask = (_, index) => {
          const prompt = Array.from({ length: 24 }, (_, at) => 100 + ((at * 37 + index * 11) % 200));
          return engine.completions.create({ prompt, max_tokens: numTokens, cache: { enabled: false } });
        };
        await Promise.all(Array.from({ length: num }, ask));
        const isDecode = ({ parts }) =>
          parts.length === num && parts.every(({ start, numPrompt }) => start >= numPrompt);
        rows.push({ num, encodeMs: steps.filter(isDecode).map(({ encodeMs }) => encodeMs) });
      }
      return { rows, adapter: engine.info.adapter, isIsolated: globalThis.crossOriginIsolated };
    } finally {
      await engine.unload();
    }
  },
};
