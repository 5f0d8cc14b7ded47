// ONNX Runtime Web in a page: a greedy loop over a model with its keys and values as inputs and outputs, which stay in
// GPU memory between the steps.
import * as ort from '/peers/onnxruntime-web/dist/ort.webgpu.bundle.min.mjs';

const PAST = /^past_key_values\.(\d+\.(?:key|value))$/;

const int64 = (values) => new ort.Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length]);
const upTo = (from, to) => Array.from({ length: to - from }, (_, index) => from + index);

/** The id of the largest logit of the last row. */
async function bestId(logits) {
  const vocab = logits.dims.at(-1);
  const values = await logits.getData(true);
  const row = values.subarray(values.length - vocab);
  let best = 0;
  for (let id = 1; id < vocab; id++) if (row[id] > row[best]) best = id;
  return best;
}

/** One sequence: tokens go in, the next one comes out. */
class Sequence {
  #session;
  #cache;
  #length = 0;

  constructor(session, { kvHeads, headDim }) {
    this.#session = session;
    const names = session.inputNames.filter((name) => PAST.test(name));
    const empty = () => new ort.Tensor('float32', new Float32Array(0), [1, kvHeads, 0, headDim]);
    this.#cache = Object.fromEntries(names.map((name) => [name, empty()]));
  }

  async next(ids) {
    const total = this.#length + ids.length;
    const feeds = { ...this.#cache, input_ids: int64(ids), attention_mask: int64(new Array(total).fill(1)) };
    if (this.#session.inputNames.includes('position_ids')) feeds.position_ids = int64(upTo(this.#length, total));
    const outputs = await this.#session.run(feeds);
    const id = await bestId(outputs.logits);
    this.free();
    for (const name of Object.keys(this.#cache)) this.#cache[name] = outputs[`present.${PAST.exec(name)[1]}`];
    this.#length = total;
    return id;
  }

  /** Gives the keys and values back. */
  free() {
    for (const tensor of Object.values(this.#cache)) tensor.dispose();
  }
}

/** Loads the model; answers what does not change between runs. */
export async function load({ folder, shape }) {
  ort.env.wasm.wasmPaths = '/peers/onnxruntime-web/dist/';
  ort.env.wasm.numThreads = 1;
  const outputs = ({ name }) => name.startsWith('present.');
  const location = Object.fromEntries(
    upTo(0, shape.layers).flatMap((layer) => [
      [`present.${layer}.key`, 'gpu-buffer'],
      [`present.${layer}.value`, 'gpu-buffer'],
    ]),
  );
  const session = await ort.InferenceSession.create(`${folder}model.onnx`, {
    executionProviders: ['webgpu'],
    externalData: [{ path: 'model.onnx.data', data: `${folder}model.onnx.data` }],
    preferredOutputLocation: location,
  });
  const present = session.outputMetadata.filter(outputs);

  /** As Pagewise's: the first token belongs to the prefill, `decodeTokens` more are decoded. */
  async function measure({ ids, decodeTokens }) {
    const sequence = new Sequence(session, shape);
    const start_ms = performance.now();
    const answer = [await sequence.next(ids)];
    const first_ms = performance.now();
    while (answer.length <= decodeTokens) answer.push(await sequence.next(answer.slice(-1)));
    const last_ms = performance.now();
    sequence.free();
    return {
      prefill: (1000 * ids.length) / (first_ms - start_ms),
      decode: (1000 * decodeTokens) / (last_ms - first_ms),
      answer,
    };
  }

  globalThis.contestant = { measure };
  return { version: ort.env.versions.web, kv: present[0]?.type ?? 'unknown' };
}
