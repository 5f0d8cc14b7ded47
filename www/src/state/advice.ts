/** What went wrong, in a person's words, and what to do next. */
import type { Browser } from './browser';

/** A problem the page can explain: the engine's error codes, and those it finds out itself. */
export type ProblemCode =
  | 'insecure'
  | 'no_webgpu'
  | 'no_adapter'
  | 'out_of_memory'
  | 'unsupported_model'
  | 'corrupt_model'
  | 'context_too_long'
  | 'device_lost'
  | 'network'
  | 'wrong_result'
  | 'storage_full'
  | 'bad_request'
  | 'unknown';

/** What a button under the advice does. */
export type AdviceAction = 'retry' | 'choose_model' | 'settings' | 'new_chat' | 'reload';

export interface Advice {
  readonly title: string;
  readonly text: string;
  /** What to do, most promising first. */
  readonly steps: readonly string[];
  readonly actions: readonly AdviceAction[];
}

/** The browsers that have WebGPU, for everybody the specific advice does not fit. */
const VERSIONS =
  'WebGPU is in Chrome and Edge from 113 (Android: 121, Linux: 144 on Intel graphics), Firefox from 141 (Windows) and 145 (macOS), Safari from 26.';

const CHROME_LINUX_FLAGS =
  'On Linux, open chrome://flags, enable "Unsafe WebGPU Support" (#enable-unsafe-webgpu) and "Vulkan" (#enable-vulkan), then restart the browser.';
const FIREFOX_FLAG = 'In Firefox, open about:config, set dom.webgpu.enabled to true, then restart the browser.';
const HARDWARE_SWITCH =
  'Turn on "Use graphics acceleration when available" in the browser\'s settings under System, then restart it.';

/** The advice for a problem in this browser. */
export function adviceFor(code: ProblemCode, browser: Browser): Advice {
  switch (code) {
    case 'insecure':
      return {
        title: 'This address hides the GPU',
        text: 'Browsers offer WebGPU only to pages opened over https or from this computer, and this page came over plain http.',
        steps: [
          'Open the page with https:// in front.',
          'If it runs on this computer, open it as http://localhost with the same port.',
        ],
        actions: [],
      };
    case 'no_webgpu':
      return {
        title: 'This browser has no WebGPU',
        text: 'Pagewise computes the model on your GPU through WebGPU, which is missing or switched off here.',
        steps: [...webgpuSteps(browser), VERSIONS],
        actions: ['reload'],
      };
    case 'no_adapter':
      return {
        title: 'No GPU that WebGPU can use',
        text: 'The browser has WebGPU but found no graphics card it allows: its driver may be blocked or too old, or acceleration is switched off.',
        steps: adapterSteps(browser),
        actions: ['reload'],
      };
    case 'out_of_memory':
      return {
        title: 'Not enough GPU memory',
        text: 'The model, its KV cache and working space do not fit into the memory the browser gives this page.',
        steps: [
          'Set a shorter context length in the settings: the KV cache shrinks with it.',
          'Set the KV format to f16, which takes half of f32.',
          'Choose a smaller model, or the same one with fewer bits (Q4 instead of Q8).',
          'Close other tabs and programs that use the GPU.',
        ],
        actions: ['settings', 'choose_model', 'retry'],
      };
    case 'unsupported_model':
      return {
        title: 'This model is not supported',
        text: 'The file was read, but Pagewise cannot compute this kind of model.',
        steps: [
          'Choose a GGUF file of the Llama family (SmolLM2, Llama 3...) or of Gemma 3.',
          'Choose a common quantisation: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K, F16, BF16 or F32.',
        ],
        actions: ['choose_model'],
      };
    case 'corrupt_model':
      return {
        title: 'This is not a readable GGUF file',
        text: 'The file is damaged, incomplete or of another kind.',
        steps: [
          'Check that its name ends in .gguf; a .safetensors, .bin or .onnx file is another format.',
          'Download it again: an interrupted download leaves a shorter file.',
          'A model in several parts (-00001-of-00003.gguf) needs all of them: choose them together.',
        ],
        actions: ['choose_model'],
      };
    case 'context_too_long':
      return {
        title: 'This conversation is too long for the model',
        text: 'Its messages alone fill the context. Your message is kept.',
        steps: ['Start a new chat.', 'Or send a shorter message, or load the model with a longer context.'],
        actions: ['new_chat', 'settings', 'retry'],
      };
    case 'device_lost':
      return {
        title: 'The GPU was lost',
        text: 'The driver restarted, the computer slept, or another program took the GPU. Your conversation is kept.',
        steps: ['Load the model again.', 'If it happens again, choose a smaller model or update the graphics driver.'],
        actions: ['retry', 'choose_model'],
      };
    case 'network':
      return {
        title: 'The model could not be downloaded',
        text: 'The server did not answer, refused, or does not allow other pages to read its files.',
        steps: [
          'Check the address and the connection, then try again.',
          'The server must allow cross-origin reads (CORS) and byte ranges; Hugging Face "resolve" links do.',
          'Or download the file and choose it here.',
        ],
        actions: ['retry', 'choose_model'],
      };
    case 'storage_full':
      return {
        title: 'There is no room to keep the model',
        text: 'The browser does not give this page enough storage for it.',
        steps: [
          'Free space on this device, or delete other models.',
          'A private window may have no storage: use another.',
        ],
        actions: ['retry', 'choose_model'],
      };
    case 'wrong_result':
      return {
        title: 'This GPU computed something wrong',
        text: 'Pagewise checks results and stopped rather than show nonsense. A graphics driver fault is the usual cause.',
        steps: [
          'Update the graphics driver and the browser.',
          'Try another browser on this computer.',
          'Load the model again.',
        ],
        actions: ['retry', 'choose_model'],
      };
    case 'bad_request':
      return {
        title: 'The request was refused',
        text: 'A setting or message is outside what the model accepts.',
        steps: ['Check the settings, then try again.'],
        actions: ['settings', 'retry'],
      };
    case 'unknown':
      return {
        title: 'Something went wrong',
        text: 'This is probably a fault in Pagewise. Your conversation is kept.',
        steps: ['Try again.', 'If it happens again, reload the page and report the text below.'],
        actions: ['retry', 'reload'],
      };
  }
}

function webgpuSteps({ name, system }: Browser): string[] {
  if (system === 'ios') return ['Update to iOS or iPadOS 26 or newer: every browser on it then has WebGPU.'];
  if (name === 'safari') return ['Update to Safari 26 or newer (macOS 26), or use Chrome or Edge.'];
  if (name === 'firefox') {
    return system === 'windows' || system === 'macos'
      ? ['Update Firefox, or use Chrome or Edge.', FIREFOX_FLAG]
      : ['Use Chrome, or Firefox Nightly.', FIREFOX_FLAG];
  }
  if (name === 'chrome' || name === 'edge') {
    const update = 'Update the browser to its newest version.';
    return system === 'linux' ? [update, CHROME_LINUX_FLAGS] : [update, HARDWARE_SWITCH];
  }
  return ['Open this page in a current Chrome, Edge, Firefox or Safari.'];
}

function adapterSteps({ name, system }: Browser): string[] {
  const steps = name === 'firefox' ? [FIREFOX_FLAG] : [HARDWARE_SWITCH];
  if (system === 'linux' && name !== 'firefox') steps.push(CHROME_LINUX_FLAGS);
  steps.push('Update the graphics driver and the browser.');
  if (name === 'chrome' || name === 'edge') {
    steps.push(`Open ${name}://gpu: the "WebGPU" line says why it is off.`);
  }
  steps.push('In a virtual machine or over remote desktop there may be no GPU: try on the computer itself.');
  return steps;
}
