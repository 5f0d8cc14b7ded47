/**
 * Pagewise: a language model inside a web page, on the visitor's own GPU.
 *
 * ```ts
 * import { Engine } from 'pagewise';
 *
 * const engine = await Engine.load('smollm2-135m-instruct');
 * const stream = await engine.chat.completions.create({
 *   messages: [{ role: 'user', content: 'Hello!' }],
 *   stream: true,
 * });
 * for await (const chunk of stream) console.log(chunk.choices[0]?.delta.content ?? '');
 * await engine.unload();
 * ```
 *
 * @module
 */

export {
  type BudgetOptions,
  ConversationBudget,
  type ConversationSummary,
  type Cut,
  type FittedPrompt,
  type OverflowPolicy,
  type SummaryRequest,
} from './budget.js';
export { PrefixCache, type WarmOptions, type WarmResult } from './cache.js';
export type * from './cache-types.js';
export { ChatCompletions } from './chat.js';
export { Completions } from './completions.js';
export {
  type ExplainablePrompt,
  type ExplainableRequest,
  explainMiss,
  type MissCause,
  type MissExplanation,
  type MissPlace,
  type MissSide,
  type MissSize,
} from './doctor.js';
export { Embeddings } from './embeddings.js';
export { Engine } from './engine.js';
export { ERROR_CODES, type ErrorCode, type ErrorDetails, PagewiseError } from './errors.js';
export { createFetch, type Fetch, type FetchOptions, type HandlerOptions, handleRequest } from './handler.js';
export type { OpenAIErrorBody } from './http-errors.js';
export { type KvMemory, type KvMemoryParams, kvMemory } from './memory.js';
export { type ListOptions, Models } from './models.js';
export { type Route, type RouteOptions, registerRoute } from './route.js';
export type * from './simulation.js';
export { simulate } from './simulation.js';
export { Stream } from './stream.js';
export type * from './types.js';
