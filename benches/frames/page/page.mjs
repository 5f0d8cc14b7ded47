// An animation that notes when its frames come, beside an engine that computes a prompt.
import { Engine } from '/js/dist/index.js';

const context = document.getElementById('canvas').getContext('2d');

/** Draws until `stop` is called; `gaps` are the milliseconds between frames. */
function animate() {
  const gaps = [];
  let last;
  let handle = requestAnimationFrame(function frame(now_ms) {
    if (last !== undefined) gaps.push(now_ms - last);
    last = now_ms;
    context.clearRect(0, 0, 800, 600);
    for (let ball = 0; ball < 50; ball++) {
      const turn = now_ms / 500 + ball;
      context.fillStyle = `hsl(${ball * 7} 80% 50%)`;
      context.fillRect(400 + 350 * Math.cos(turn), 300 + 250 * Math.sin(turn * 1.3), 20, 20);
    }
    handle = requestAnimationFrame(frame);
  });
  return { gaps, stop: () => cancelAnimationFrame(handle) };
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

globalThis.bench = {
  /** The frames of an idle page. */
  async idle(ms) {
    const animation = animate();
    await sleep(ms);
    animation.stop();
    return { gaps: animation.gaps };
  },
  /** The frames while so many workers do nothing but keep a core busy. */
  async busy(ms, numWorkers) {
    const workers = Array.from({ length: numWorkers }, () => new Worker('busy.mjs', { type: 'module' }));
    // They have to have started.
    await sleep(500);
    const animation = animate();
    await sleep(ms);
    animation.stop();
    for (const worker of workers) worker.terminate();
    return { gaps: animation.gaps };
  },
  /** The frames while a prompt of `numTokens` is computed, and how long that took. */
  async run(source, stepTargetMs, numTokens) {
    const engine = await Engine.load(source, { contextLength: numTokens + 16, stepTargetMs });
    try {
      const prompt = Array.from({ length: numTokens }, (_, index) => 100 + ((index * 37) % 200));
      const ask = (ids) => engine.completions.create({ prompt: ids, max_tokens: 1, cache: { enabled: false } });
      // A first step compiles and learns.
      await ask(prompt.slice(0, 64));
      let numSteps = 0;
      const stopListening = engine.onStep(() => numSteps++);
      const animation = animate();
      const { timings } = await ask(prompt);
      animation.stop();
      stopListening();
      return { gaps: animation.gaps, numSteps, ttftMs: timings.ttft_ms, adapter: engine.info.adapter };
    } finally {
      await engine.unload();
    }
  },
};
