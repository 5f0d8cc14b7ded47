// Medians, ratios, and the Markdown that they are shown in.

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

const number = (value) => (value < 10 ? value.toFixed(2) : value.toFixed(1));

/** The median, and what it is the median of. */
function spread(runs, key) {
  const values = runs.map((run) => run[key]);
  const range = values.length > 1 ? ` (${number(Math.min(...values))} to ${number(Math.max(...values))})` : '';
  return `${number(median(values))}${range}`;
}

const ratio = (ours, peer, key) => median(ours.runs.map((run) => run[key])) / median(peer.runs.map((run) => run[key]));

function rows({ where, ours, peer, floors }) {
  const line = (engine, ratios) =>
    `| ${where} | ${engine.name} ${engine.version} | ${spread(engine.runs, 'prefill')} | ${spread(engine.runs, 'decode')} | ${ratios} |`;
  const told = ['prefill', 'decode'].map((key) => {
    const found = ratio(ours, peer, key);
    return `${key} ${found.toFixed(2)}x (at least ${floors[key]}x wanted${found < floors[key] ? ': **missed**' : ''})`;
  });
  return [line(ours, told.join(', ')), line(peer, '')];
}

function notes({ where, ours, peer, idle }) {
  const least = Math.round(100 * Math.min(...idle));
  const kv = `KV cache ${ours.kv} for Pagewise, ${peer.kv} for ${peer.name}`;
  const lines = [
    `- ${where}: ${ours.runs.length} round${ours.runs.length === 1 ? '' : 's'}; Pagewise on "${ours.adapter}", ${peer.name} on "${peer.adapter}"; ${kv}; before every measurement the processor was at least ${least} % idle.`,
  ];
  const [a, b] = [ours, peer].map(({ runs }) => runs[0].answer);
  if (a && b)
    lines.push(
      `- ${where}: the first prompt's answers, ${JSON.stringify(a)} and ${JSON.stringify(b)}, show that both compute.`,
    );
  return lines;
}

/** The whole report. `pairs` are what was measured, `facts` are lines about the run. */
export function toMarkdown({ pairs, facts }) {
  const head = '| where | engine | prefill, tokens/s | decode, tokens/s | Pagewise / peer |';
  return [
    '# Side by side',
    '',
    ...facts.map(([name, value]) => `- ${name}: ${value}`),
    '',
    head,
    head.replace(/[^|]+/g, '---'),
    ...pairs.flatMap(rows),
    '',
    ...pairs.flatMap(notes),
    '',
  ].join('\n');
}

/** Whether every ratio is what is wanted. */
export const isMet = (pairs) =>
  pairs.every(({ ours, peer, floors }) =>
    Object.entries(floors).every(([key, floor]) => ratio(ours, peer, key) >= floor),
  );
