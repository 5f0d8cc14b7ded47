// Pagewise beside its peers on one machine, in one run: node benches/peers/run.mjs [--quick]
//
// In each pair both engines are loaded and warmed up first, then measured in turns, so that whatever else slows the
// machine down meets both. Prints a table and writes it to results.md. Exit status 1 when a ratio is below what is wanted.
import fs from 'node:fs';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { root } from '../../scripts/paths.mjs';
import { capture, main, say, step } from '../../scripts/shell.mjs';
import { onnxInPage, pagewiseInPage, servePages } from './browsers.mjs';
import { llamaCpp, pagewiseNative } from './native.mjs';
import { MODEL, onnxShape, prepare, work } from './prepare.mjs';
import { isMet, toMarkdown } from './report.mjs';

const CONTEXT_LENGTH = 2048;
const PROMPT_TOKENS = 64;
const DECODE_TOKENS = 8;
const QUICK = process.argv.includes('--quick');
const ROUNDS = QUICK ? 1 : 3;
/** A pair gets no further round that would end later than this after its first: on a slow machine fewer have to do. */
const PAIR_LIMIT_S = 330;
/** Decoded when warming up, after a prompt of the measured length: each engine has kernels of its own for either. */
const WARM_UP_TOKENS = 1;

/** A busy machine is waited for, but not for ever. */
const LOAD_LIMIT = 1.5;
const LOAD_WAIT_S = QUICK ? 0 : 240;
const IDLE_LIMIT = 0.9;
const IDLE_WAIT_S = 20;

const TEXT =
  'The history of the steam engine stretches back as far as the first century; the first recorded rudimentary steam ' +
  'engine was described by Hero of Alexandria. Later devices pumped water out of mines, and after many improvements ' +
  'engines drove mills, ships and railways all over the world, until electric motors and turbines took their place. ' +
  'Their valves, boilers and governors are still taught to every engineer.';

/** Waits for the load average to fall; answers what it was. */
async function waitForQuiet() {
  const start_ms = Date.now();
  while (os.loadavg()[0] >= LOAD_LIMIT && Date.now() - start_ms < 1000 * LOAD_WAIT_S) await sleep(5000);
  return os.loadavg()[0];
}

/** The part of all processors' time that was idle during a second. */
async function idleShare() {
  const sum = () =>
    os
      .cpus()
      .reduce(
        ([idle, all], { times }) => [idle + times.idle, all + Object.values(times).reduce((a, b) => a + b)],
        [0, 0],
      );
  const before = sum();
  await sleep(1000);
  const after = sum();
  return (after[0] - before[0]) / (after[1] - before[1]);
}

/** Waits a little for the processors to be idle; answers how far they were. */
async function settle() {
  for (const start_ms = Date.now(); ; ) {
    const idle = await idleShare();
    if (idle >= IDLE_LIMIT || Date.now() - start_ms > 1000 * IDLE_WAIT_S) return idle;
  }
}

/** Warms both up, then measures them in turns. `prompts` has one more prompt than there are rounds. */
async function compare({ where, ours, peer, floors, prompts, toText }) {
  for (const contestant of [ours, peer])
    await step(`${where}: ${contestant.name} warms up`, () =>
      contestant.measure({ ids: prompts[ROUNDS], decodeTokens: WARM_UP_TOKENS }),
    );
  const runs = { ours: [], peer: [] };
  const idle = [];
  const start_ms = Date.now();
  for (let round = 0; round < ROUNDS; round++) {
    const spent_s = (Date.now() - start_ms) / 1000;
    if (round > 0 && spent_s * (1 + 1 / round) > PAIR_LIMIT_S) break;
    for (const [key, contestant] of Object.entries({ ours, peer })) {
      idle.push(await settle());
      const run = await contestant.measure({ ids: prompts[round], decodeTokens: DECODE_TOKENS });
      runs[key].push({ ...run, answer: run.answer && toText(run.answer) });
      const rates = `${run.prefill.toFixed(2)} and ${run.decode.toFixed(2)} tokens/s`;
      say(`${where}, round ${round + 1}: ${contestant.name} ${rates} (${Math.round(100 * idle.at(-1))} % idle before)`);
    }
  }
  return { where, floors, idle, ours: { ...ours, runs: runs.ours }, peer: { ...peer, runs: runs.peer } };
}

/** Opens two contestants one after the other, compares them, and closes both whatever happens. */
async function pair(open, comparison) {
  const opened = [];
  try {
    for (const make of open) opened.push(await make());
    return await compare({ ...comparison, ours: opened[0], peer: opened[1] });
  } finally {
    for (const contestant of opened) await contestant.close();
  }
}

/** Prompts of equal length that begin differently, so that nothing computed for one serves another. */
function makePrompts({ program, model }) {
  const { ids } = JSON.parse(capture(program, ['tokenize', model, TEXT]));
  if (ids.length < PROMPT_TOKENS) throw new Error(`the text has ${ids.length} tokens, ${PROMPT_TOKENS} needed`);
  const turned = (by) => [...ids.slice(by), ...ids.slice(0, by)].slice(0, PROMPT_TOKENS);
  const prompts = Array.from({ length: ROUNDS + 1 }, (_, round) => turned(5 * round));
  // Two that begin alike would share what a prefix cache keeps.
  if (new Set(prompts.map(([first]) => first)).size !== prompts.length) throw new Error('prompts that begin alike');
  return prompts;
}

const detokenize = ({ program, model }, ids) => JSON.parse(capture(program, ['detokenize', model, ids.join(',')])).text;

async function inBrowser({ onnx, ...prepared }, version, prompts) {
  const server = await servePages({ onnx });
  const endIds = [0, 2];
  const ours = { url: `/models/${MODEL}`, contextLength: CONTEXT_LENGTH, endIds };
  const peer = { folder: '/onnx/', shape: onnxShape(onnx) };
  try {
    return await pair([() => pagewiseInPage(server, ours, version), () => onnxInPage(server, peer)], {
      where: 'Chromium, SwiftShader',
      floors: { prefill: 4, decode: 20 },
      prompts,
      toText: (ids) => detokenize(prepared, ids),
    });
  } finally {
    await server.close();
  }
}

function natively({ program, model, llama }, prompts) {
  const ours = { program, model, contextLength: CONTEXT_LENGTH };
  const peer = { folder: llama, model, contextLength: CONTEXT_LENGTH, work, threads: os.cpus().length };
  return pair([() => pagewiseNative(ours), () => llamaCpp(peer)], {
    where: 'native, lavapipe',
    floors: { prefill: 3, decode: 4 },
    prompts,
    toText: (ids) => detokenize({ program, model }, ids),
  });
}

await main(async () => {
  const prepared = await prepare();
  const prompts = makePrompts(prepared);
  const load = await step('waiting for a quiet machine', waitForQuiet);
  const start = new Date();
  const commit = capture('git', ['describe', '--always', '--dirty'], { cwd: root }) ?? 'unknown';
  const { version } = await pagewiseNative(prepared);
  const lavapipe = await natively(prepared, prompts);
  const chromium = await inBrowser(prepared, version, prompts);
  const pairs = [chromium, lavapipe];

  const busy =
    load >= LOAD_LIMIT
      ? ` (above ${LOAD_LIMIT}: the machine had other work, which slows the engines down unequally: measure again)`
      : '';
  const facts = [
    ['command', `\`node benches/peers/run.mjs${QUICK ? ' --quick' : ''}\``],
    ['date', `${start.toISOString().slice(0, 16)}Z, ${Math.round((Date.now() - start) / 1000)} s`],
    ['commit', commit],
    ['machine', `${os.cpus()[0].model}, ${os.cpus().length} processors, ${chromium.ours.browser}`],
    ['load average at the start', `${load.toFixed(2)}${busy}`],
    ['model', `${MODEL}; ONNX Runtime Web runs the same weights as int4 (see README.md)`],
    ['lengths', `prompt ${PROMPT_TOKENS} tokens, ${DECODE_TOKENS} decoded, context ${CONTEXT_LENGTH}`],
    ['shown', `median (least to most) of up to ${ROUNDS} rounds, in turns, after warming up`],
  ];
  const markdown = toMarkdown({ pairs, facts });
  console.log(`\n${markdown}`);
  fs.writeFileSync(fileURLToPath(new URL('results.md', import.meta.url)), markdown);
  if (!isMet(pairs)) process.exitCode = 1;
});
