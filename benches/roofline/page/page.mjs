// Runs the benchmark with the arguments in the address and shows its tables.
import start, { roofline } from './module/roofline.js';

const out = document.querySelector('pre');
const print = (line) => {
  out.textContent += `${line}\n`;
};
try {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: 'high-performance' });
  if (!adapter) throw new Error('this browser offers no WebGPU adapter');
  const { vendor, architecture, description } = adapter.info;
  await start();
  const args = new URLSearchParams(location.search).get('args') ?? '';
  await roofline(args.split(/\s+/).filter(Boolean), [vendor, architecture, description].join(' '), false, print);
} catch (error) {
  print(`failed: ${error.message ?? error}`);
}
globalThis.isDone = true;
