/**
 * The calls that the engine answers by itself.
 */

import type { CallMessage, Calls, CallType } from './protocol.js';
import type { WasmEngine } from './wasm.js';

/** Calls that need more than the engine: files, requests and their names, listeners, the GPU's time. */
type Elsewhere =
  | 'load'
  | 'inspect'
  | 'plan'
  | 'submit'
  | 'stepListen'
  | 'cacheBlocks'
  | 'cacheListen'
  | 'cacheSave'
  | 'cacheRestore'
  | 'modelsList'
  | 'modelsFind'
  | 'modelsDelete'
  | 'modelsDownload'
  | 'unload';

/** Answers a call; `modelId` labels metrics. */
export function callEngine(
  engine: WasmEngine,
  modelId: string,
  message: Exclude<CallMessage, { type: Elsewhere }>,
): Calls[CallType]['result'] | Promise<Float32Array[]> {
  switch (message.type) {
    case 'tokenize':
      return [...engine.tokenize(message.text, message.addSpecial, message.parseSpecial)];
    case 'detokenize':
      return engine.detokenize(Uint32Array.from(message.ids), message.skipSpecial);
    case 'applyTemplate':
      return engine.applyTemplate(message.messages, message.tools, message.addGenerationPrompt);
    case 'metrics':
      return engine.metrics();
    case 'metricsText':
      return engine.metricsText(modelId);
    case 'cacheStats':
      return engine.cacheStats();
    case 'cachePrefixes':
      return engine.cachePrefixes();
    case 'cacheExplain':
      return engine.cacheExplain(message.request);
    case 'cachePin':
      return engine.cachePin(message.salt, message.prefix);
    case 'cacheUnpin':
      return engine.cacheUnpin(message.salt, message.prefix);
    case 'cacheEvict':
      return engine.cacheEvict(message.salt, message.prefix);
    case 'cachePolicy':
      engine.setCachePolicy(message.policy);
      return null;
    case 'cacheClear':
      return engine.cacheClear();
    case 'logits':
      return engine.logits(Uint32Array.from(message.ids), Uint32Array.from(message.positions));
  }
}
