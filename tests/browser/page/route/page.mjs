// A site that uses OpenAI's client, as it comes from npm, against its own page.
import { createFetch, Engine, registerRoute } from '/js/dist/index.js';
import OpenAI from '/openai.mjs';

let engine;
let route;

/** Loads a model in place of the one before. */
async function load(url, options) {
  await engine?.unload();
  engine = await Engine.load(url, { contextLength: 512, ...options });
  return engine.info.id;
}

/** Serves it; answers the address. */
async function register(options) {
  route = await registerRoute(engine, options);
  return route.baseURL;
}

/** What answers: the service worker's route, or the page itself. */
function client(way) {
  const common = { apiKey: 'none', dangerouslyAllowBrowser: true, maxRetries: 0 };
  if (way === 'fetch') return new OpenAI({ ...common, fetch: createFetch(engine) });
  return new OpenAI({ ...common, baseURL: `${location.origin}/v1` });
}

/** An error as data. */
const failure = (promise) =>
  promise.then(
    () => null,
    (error) => ({
      kind:
        error.constructor === OpenAI.APIError
          ? 'APIError'
          : Object.keys(OpenAI).find((key) => OpenAI[key] === error.constructor),
      ...{ status: error.status, type: error.type, param: error.param, code: error.code, message: error.message },
    }),
  );

/** Waits until nothing is computed any more; answers the metrics. */
async function idle() {
  for (;;) {
    const metrics = await engine.metrics();
    if (metrics.numRunning === 0 && metrics.numWaiting === 0) return metrics;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

globalThis.violations = [];
addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
  globalThis.violations.push(`${violatedDirective} ${blockedURI}`),
);

globalThis.test = {
  client,
  engine: () => engine,
  failure,
  idle,
  load,
  register,
  registerRoute,
  route: () => route,
  /** Without the model's own end among them, so that an answer has the length that was asked for. */
  endless: { allowed_token_ids: Array.from({ length: 100 }, (_, i) => 70 + i), temperature: 0 },
};
