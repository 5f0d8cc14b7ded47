// A round of mixed requests at one engine, all at once, and what became of each. Everything random comes from a seed; only
// the moments of aborts and deadlines depend on the machine.

/** Numbers that look random (`mulberry32`): the same for the same seed. Answers `below(end)`. */
function random(seed) {
  let state = seed;
  return (end) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * end);
  };
}

/** Prompts of a few families that share beginnings, and how long their answers may be. */
export function questions(num, vocabSize) {
  const below = random(1);
  return Array.from({ length: num }, () => {
    const family = below(8);
    const shared = Array.from({ length: below(50) }, (_, at) => 5 + ((family * 31 + at * 7) % (vocabSize - 5)));
    const own = Array.from({ length: 1 + below(20) }, () => 5 + below(vocabSize - 5));
    return { prompt: [...shared, ...own], max_tokens: 1 + below(24), temperature: 0 };
  });
}

/** What each question is answered with when the engine has nothing else to do, and no cache. */
export async function answersAlone(engine, all) {
  const answers = [];
  for (const question of all) {
    const { choices } = await engine.completions.create({ ...question, cache: { enabled: false } });
    answers.push({ text: choices[0].text, reason: choices[0].finish_reason });
  }
  return answers;
}

/** Of how many requests, one is given up in which way. */
const ABORTS = [
  ['before', 30],
  ['waiting', 12],
  ['prefill', 12],
  ['decode', 12],
];

/** The requests of a round: what is asked, and how it is given up if it is. */
function round(seed, num, all) {
  const below = random(seed);
  const oneIn = (n) => below(n) === 0;
  return Array.from({ length: num }, () => {
    const question = below(all.length);
    const params = { ...all[question], n: oneIn(8) ? 2 + below(3) : 1 };
    params.priority = ['batch', 'normal', 'interactive', below(5) - 2][below(4)];
    if (oneIn(8)) params.deadline_ms = oneIn(2) ? 0.01 : 1 + below(4000);
    if (oneIn(8)) params.timeout_ms = oneIn(2) ? { queue: oneIn(2) ? 0.01 : 1 + below(2000) } : 1 + below(4000);
    params.cache = {};
    if (oneIn(8)) params.cache.enabled = false;
    else {
      if (oneIn(8)) params.cache.salt = 'tenant';
      if (oneIn(25)) params.cache.pin = true;
      if (oneIn(8)) params.cache.ttl_seconds = 0.05;
    }
    const [abort] = ABORTS.find(([, n]) => oneIn(n)) ?? [];
    const isWatched = abort === 'prefill' || abort === 'decode';
    if (isWatched || oneIn(3)) params.stream = true;
    if (abort === 'prefill' || (params.stream && oneIn(4))) params.stream_options = { include_progress: true };
    return { question, params, abort, breaksOffAt: params.stream && !abort && oneIn(6) ? 1 + below(3) : 0 };
  });
}

/** Reads a stream, and gives it up where it is to be. Answers the choices as far as they came. */
async function read(stream, asked, controller, choices) {
  let numTexts = 0;
  for await (const chunk of stream) {
    if (asked.abort === 'prefill' && chunk.progress?.state === 'prefill') controller.abort();
    for (const { index, text, finish_reason } of chunk.choices) {
      choices[index].text += text;
      choices[index].reason = finish_reason ?? choices[index].reason;
      if (asked.abort === 'decode') controller.abort();
      if (++numTexts === asked.breaksOffAt) return 'broken off';
    }
  }
  return 'finished';
}

/** One request: how it ended, and its answers. */
async function ask(engine, asked) {
  const { params } = asked;
  const controller = new AbortController();
  const choices = Array.from({ length: params.n }, () => ({ text: '', reason: null }));
  if (asked.abort === 'before') controller.abort();
  try {
    const creating = engine.completions.create(params, { signal: controller.signal });
    if (asked.abort === 'waiting') setTimeout(() => controller.abort(), 0);
    const answer = await creating;
    if (params.stream) return { end: await read(answer, asked, controller, choices), choices };
    for (const { index, text, finish_reason } of answer.choices) choices[index] = { text, reason: finish_reason };
    return { end: 'finished', choices };
  } catch (error) {
    return { end: error.code ?? String(error), choices };
  }
}

/** Wrong answers of a request, as text. */
function wrong({ end, choices }, { params }, alone) {
  const isRight = ({ text, reason }) =>
    end === 'finished' ? text === alone.text && reason === alone.reason : alone.text.startsWith(text);
  const bad = choices.filter((choice) => !isRight(choice));
  return bad.map(
    (choice) => `${end}: ${JSON.stringify(choice)}, alone ${JSON.stringify(alone)}: ${JSON.stringify(params)}`,
  );
}

/**
 * What must be true of the blocks and counters between any two steps, as far as it can be seen from outside; answers what
 * is not. `null`: a step came between the questions.
 */
async function look(engine) {
  const [before, blocks, after] = await Promise.all([engine.metrics(), engine.cache.blocks(), engine.metrics()]);
  const state = ({ numSteps, numRunning, numWaiting, kv }) => JSON.stringify([numSteps, numRunning, numWaiting, kv]);
  if (state(before) !== state(after)) return null;
  const problems = [];
  const must = (holds, what) => holds || problems.push(`${what}: ${JSON.stringify({ before, blocks })}`);
  for (const [group, { used, numBlocks }] of before.kv.entries()) {
    const own = blocks.filter((block) => block.group === group);
    must(own.length === numBlocks && new Set(own.map(({ block }) => block)).size === numBlocks, 'each block once');
    must(own.filter(({ numHolders }) => numHolders > 0).length === used, 'used blocks are those with holders');
    // A table holds a block once.
    must(
      own.every(({ numHolders }) => numHolders <= before.numRunning),
      'no more holders than run',
    );
    const cached = own.flatMap((block) => block.cached ?? []);
    const nodes = new Map(cached.map((node) => [node.node, node]));
    must(nodes.size === cached.length, 'a node has one block');
    const roots = cached.filter(({ position }) => position === 0);
    const parents = cached.filter(({ position }) => position > 0).map((node) => [node, nodes.get(node.parent)]);
    must(
      roots.every(({ parent }) => !nodes.has(parent)),
      'nothing is before the first block',
    );
    must(
      parents.every(([node, parent]) => parent?.position + 16 === node.position && parent?.numTokens === 16),
      'what is before a cached block is cached too',
    );
  }
  must(before.numWaiting === 0 || before.numRunning > 0 || before.kv.every(({ used }) => used === 0), 'somebody runs');
  return problems;
}

/** Serves a round; every promise of it has settled when this one does. */
export async function serveRound(engine, all, alone, seed, num) {
  const requests = round(seed, num, all);
  const problems = [];
  let [numLooks, isDone] = [0, false];
  const looking = (async () => {
    while (!isDone) {
      const found = await look(engine);
      if (found === null) continue;
      numLooks += 1;
      problems.push(...found);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  const results = await Promise.all(requests.map((asked) => ask(engine, asked)));
  isDone = true;
  await looking;
  const ends = {};
  for (const [index, result] of results.entries()) {
    ends[result.end] = (ends[result.end] ?? 0) + 1;
    problems.push(...wrong(result, requests[index], alone[requests[index].question]));
  }
  const metrics = await engine.metrics();
  await engine.cache.clear();
  const [stats, blocks] = [await engine.cache.stats(), await engine.cache.blocks()];
  const numCached = blocks.filter(({ cached }) => cached !== null).length;
  return { ends, problems: problems.slice(0, 5), numLooks, metrics, stats, numCached };
}
