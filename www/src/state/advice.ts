/** What went wrong, in a person's words, and what to do next. */
import { translator } from '../i18n';
import { problems as en } from '../i18n/en/problems';
import { problems as zh } from '../i18n/zh/problems';
import type { Browser } from './browser';

const t = translator(en, zh);

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

type Key = keyof typeof en;

/** Keys of what is said: title, text, then steps, the most promising first. */
interface Script {
  readonly title: Key;
  readonly text: Key;
  readonly steps: readonly Key[];
  readonly actions: readonly AdviceAction[];
}

export interface Advice {
  readonly title: string;
  readonly text: string;
  /** What to do, most promising first. */
  readonly steps: readonly string[];
  readonly actions: readonly AdviceAction[];
}

const SCRIPTS: Readonly<Record<ProblemCode, Script>> = {
  insecure: {
    title: 'insecureTitle',
    text: 'insecureText',
    steps: ['insecureHttps', 'insecureLocalhost'],
    actions: [],
  },
  no_webgpu: { title: 'noWebgpuTitle', text: 'noWebgpuText', steps: [], actions: ['reload'] },
  no_adapter: { title: 'noAdapterTitle', text: 'noAdapterText', steps: [], actions: ['reload'] },
  out_of_memory: {
    title: 'memoryTitle',
    text: 'memoryText',
    steps: ['memoryContext', 'memoryKv', 'memorySmaller', 'memoryTabs'],
    actions: ['settings', 'choose_model', 'retry'],
  },
  unsupported_model: {
    title: 'unsupportedTitle',
    text: 'unsupportedText',
    steps: ['unsupportedFamily', 'unsupportedFormat'],
    actions: ['choose_model'],
  },
  corrupt_model: {
    title: 'corruptTitle',
    text: 'corruptText',
    steps: ['corruptName', 'corruptAgain', 'corruptParts'],
    actions: ['choose_model'],
  },
  context_too_long: {
    title: 'longTitle',
    text: 'longText',
    steps: ['longNew', 'longBudget', 'longShorter'],
    actions: ['new_chat', 'settings', 'retry'],
  },
  device_lost: {
    title: 'lostTitle',
    text: 'lostText',
    steps: ['lostAgain', 'lostSmaller'],
    actions: ['retry', 'choose_model'],
  },
  network: {
    title: 'networkTitle',
    text: 'networkText',
    steps: ['networkCheck', 'networkCors', 'networkFile'],
    actions: ['retry', 'choose_model'],
  },
  storage_full: {
    title: 'storageTitle',
    text: 'storageText',
    steps: ['storageFree', 'storagePrivate', 'storageWithout'],
    actions: ['settings', 'retry', 'choose_model'],
  },
  wrong_result: {
    title: 'wrongTitle',
    text: 'wrongText',
    steps: ['wrongDriver', 'wrongBrowser', 'lostAgain'],
    actions: ['retry', 'choose_model'],
  },
  bad_request: {
    title: 'refusedTitle',
    text: 'refusedText',
    steps: ['refusedSettings'],
    actions: ['settings', 'retry'],
  },
  unknown: {
    title: 'unknownTitle',
    text: 'unknownText',
    steps: ['unknownAgain', 'unknownReport'],
    actions: ['retry', 'reload'],
  },
};

/** The advice for a problem in this browser. */
export function adviceFor(code: ProblemCode, browser: Browser): Advice {
  const script = SCRIPTS[code];
  const steps = script.steps.map((key) => say(key));
  if (code === 'no_webgpu') steps.push(...[...webgpuSteps(browser), 'versions' as const].map((key) => say(key)));
  if (code === 'no_adapter') steps.push(...adapterSteps(browser));
  return { title: say(script.title), text: say(script.text), steps, actions: script.actions };
}

/** What a button under the advice says. */
export function actionLabel(action: AdviceAction): string {
  return t(action);
}

/** A message that takes no parameter, of which only `gpuPage` does. */
function say(key: Key, name = ''): string {
  return key === 'gpuPage' ? t(key, { name }) : t(key);
}

function webgpuSteps({ name, system }: Browser): Key[] {
  if (system === 'ios') return ['updateIos'];
  if (name === 'safari') return ['updateSafari'];
  if (name === 'firefox') {
    return [system === 'windows' || system === 'macos' ? 'updateFirefox' : 'nightly', 'firefoxFlag'];
  }
  if (name === 'chrome' || name === 'edge')
    return ['updateNewest', system === 'linux' ? 'chromeLinux' : 'hardwareSwitch'];
  return ['anyCurrent'];
}

function adapterSteps({ name, system }: Browser): string[] {
  const keys: Key[] = [name === 'firefox' ? 'firefoxFlag' : 'hardwareSwitch'];
  if (system === 'linux' && name !== 'firefox') keys.push('chromeLinux');
  keys.push('updateDriver');
  if (name === 'chrome' || name === 'edge') keys.push('gpuPage');
  keys.push('virtual');
  return keys.map((key) => say(key, name));
}
