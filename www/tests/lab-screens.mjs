/** The labs' states for screenshots.mjs, and a GPU that reads 400 GB/s and computes nothing. */

const MODEL = 'smollm2-135m-instruct';
const query = `?model=${MODEL}`;

const experiment = (id) => ({
  query,
  hash: `#/labs/cache?experiment=${id}`,
  isTall: true,
  act: async (page) => {
    await page.waitForFunction(() => {
      const rows = [...document.querySelectorAll('.outcomes tbody tr')];
      return rows.length > 1 && rows.every((row) => row.dataset.measured) && document.querySelector('.trie');
    });
  },
});

export const LAB_STATES = {
  'lab-cache': experiment('branches'),
  'lab-cache-time': experiment('time_first'),
  'lab-cache-model': { hash: '#/labs/cache', act: (page) => page.waitForSelector('.panel .button.primary') },
  'lab-batching': {
    hash: '#/labs/batching',
    isTall: true,
    act: (page) => page.waitForFunction(() => document.querySelectorAll('.plot').length === 4),
  },
  'lab-floor': {
    query,
    hash: '#/labs/floor',
    isTall: true,
    act: async (page) => {
      await page.waitForSelector('.readouts');
      await page.click('.panel .button.primary');
      await page.waitForFunction(() => document.querySelectorAll('.plot').length === 3);
      await page.waitForSelector('.panel .button.primary');
    },
  },
  'lab-memory': {
    hash: '#/labs/memory',
    isTall: true,
    act: (page) => page.waitForSelector('.uplot canvas'),
  },
  'lab-doctor': {
    query,
    hash: '#/labs/doctor',
    isTall: true,
    act: (page) => page.waitForFunction(() => document.querySelectorAll('.side .tokens').length === 2),
  },
  'lab-doctor-log': {
    hash: '#/labs/doctor',
    isTall: true,
    act: async (page) => {
      await page.waitForSelector('.found');
      await page.evaluate(() => document.querySelectorAll('.choices input')[1].click());
      await page.waitForSelector('.causes li');
    },
  },
};

/** Runs in the page, before its scripts. */
export function fakeGpu() {
  const READ_MS = (1000 * (128 << 20)) / 400e9;
  let reads = 0;
  let doneMs = 0;
  const pass = {
    setPipeline() {},
    setBindGroup() {},
    dispatchWorkgroups() {
      reads += 1;
    },
    end() {},
  };
  const device = {
    limits: { maxStorageBufferBindingSize: 128 << 20, maxBufferSize: 256 << 20 },
    createShaderModule: () => ({}),
    createComputePipeline: () => ({ getBindGroupLayout: () => ({}) }),
    createBuffer: () => ({}),
    createBindGroup: () => ({}),
    createCommandEncoder: () => {
      reads = 0;
      return { beginComputePass: () => pass, finish: () => ({}) };
    },
    queue: {
      submit() {
        doneMs = performance.now() + reads * READ_MS;
      },
      onSubmittedWorkDone: () => new Promise((done) => setTimeout(done, doneMs - performance.now())),
    },
    destroy() {},
  };
  const adapter = { requestDevice: async () => device };
  Object.defineProperty(navigator, 'gpu', { value: { requestAdapter: async () => adapter }, configurable: true });
}
