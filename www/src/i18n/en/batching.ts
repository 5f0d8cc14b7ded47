/** The batching lab. */
export const batching = {
  lead: 'Many users, one GPU. The same requests are served in three ways; what differs is only who may join a step, and when.',
  workload: 'Workload',
  simulatedLead:
    'Simulated: the engine’s own scheduler on a machine that is only described. The same sliders give the same result on every device.',
  liveSoftware:
    'WebGPU computes on the processor here: arithmetic is the limit, so steps with more tokens take longer, batches gain little and chunks cost. Look at who waits for whom; on a graphics card the times follow.',
  liveLead: 'Live: the same kind of workload, sent to the model on this device. It is loaded again for each way.',
  place: 'Machine',
  server: 'Server: 8B on an H100',
  integrated: 'Laptop: 1B',
  live: 'This device',
  rate: 'Arrivals',
  atOnce: 'all at once',
  perS: '{rate} per second',
  requests: 'Requests',
  mix: 'Long prompts',
  mixShown: '{share} of the requests',
  slots: 'Slots',
  chunk: 'Chunk of a prompt',
  tokens: { one: '{count} token', other: '{count} tokens' },
  runLive: 'Run on this device',
  figures: 'How long users wait',
  figuresLead:
    'Half of the users wait no longer than P50; one of a hundred waits longer than P99. The tail is what people remember.',
  figuresPlot: '{what}: P50, P95 and P99 of each way of batching',
  compare: 'Compare',
  ttft: 'First token',
  interToken: 'Between tokens',
  endToEnd: 'Whole answer',
  throughput: 'Throughput',
  tokensPerS: '{rate} tokens/s',
  occupancy: 'Slots in use',
  static: 'Static',
  continuous: 'Continuous',
  chunked: 'Continuous, chunked prefill',
  staticLead:
    'A batch starts together, and the next one starts when its longest answer is done. Slots stand empty; newcomers wait.',
  continuousLead:
    'Whoever is done makes room at once. But a long prompt is computed in one step, and all answers stand still meanwhile.',
  chunkedLead:
    'Long prompts are cut into chunks that are computed beside everybody’s next token. Answers go on; the long prompt’s own first token comes a little later.',
  timeline: {
    one: '{mode}: timeline of the first {count} request',
    other: '{mode}: timeline of the first {count} requests',
  },
  request: 'Request',
  waiting: 'Waiting',
  prefill: 'Prefill',
  decode: 'Decode',
  preempted: 'Preempted',
} as const;
