/**
 * Tools of the Prompt API: functions of the page that the model may call, run here until it answers.
 */

import { isObject, show } from './fields.js';
import type { ChatCompletionChunk } from './openai.js';
import { notSupported } from './prompt-input.js';
import type { ChatTool, ChatToolMessage, ToolCall } from './tool-types.js';

/** A function that the model may call. */
export interface LanguageModelTool {
  /** Letters, digits, `_` and `-`, up to 64. */
  name: string;
  /** What it does: the model reads this. */
  description: string;
  /** JSON Schema of its arguments, an object. */
  inputSchema: object;
  /**
   * Called with the arguments, which the model may have got wrong; what it resolves with is told to the model, as text or as JSON,
   * and so is the message of what it throws. Without it `create()` throws `NotSupportedError`: calls are not handed to the page.
   */
  execute: (input: never) => unknown;
}

/** Tools that were checked. */
export interface SessionTools {
  /** As the engine takes them. */
  list: ChatTool[];
  /** Calls them at the same time; what fails is told to the model. */
  run(calls: readonly ToolCall[]): Promise<ChatToolMessage[]>;
}

/** Checks tools; undefined if there are none. Throws `TypeError`, and `NotSupportedError` where one cannot be called. */
export function toTools(given: readonly unknown[] | undefined): SessionTools | undefined {
  if (given === undefined) return undefined;
  if (!Array.isArray(given)) throw new TypeError(`tools: a list is needed, ${show(given)} given`);
  if (given.length === 0) return undefined;
  const byName = new Map<string, (input: never) => unknown>();
  const list = Array.from<unknown, ChatTool>(given, (tool, index) => {
    const { name, description, inputSchema, execute } = isObject(tool) ? tool : {};
    if (typeof name !== 'string' || typeof description !== 'string' || !isObject(inputSchema))
      throw new TypeError(`tool ${index}: name, description and inputSchema are needed`);
    if (execute === undefined) throw notSupported(`tool ${name}: without execute, calls would be the page’s to run`);
    if (typeof execute !== 'function') throw new TypeError(`tool ${name}: execute: a function is needed`);
    byName.set(name, execute as (input: never) => unknown);
    return { type: 'function', function: { name, description, parameters: inputSchema } };
  });
  return { list, run: (calls) => Promise.all(calls.map((call) => result(call, byName.get(call.function.name)))) };
}

async function result({ id, function: called }: ToolCall, execute: unknown): Promise<ChatToolMessage> {
  const said = { role: 'tool', tool_call_id: id } as const;
  try {
    if (typeof execute !== 'function') throw new Error(`there is no function ${called.name}`);
    const found: unknown = await execute(JSON.parse(called.arguments));
    return { ...said, content: typeof found === 'string' ? found : (JSON.stringify(found) ?? String(found)) };
  } catch (error) {
    return { ...said, content: `Error: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** The calls of a streamed answer. */
export class StreamedCalls {
  readonly #calls = new Map<number, ToolCall>();

  /** Adds what a chunk has of them. */
  add({ choices: [choice] }: ChatCompletionChunk): void {
    for (const { index, id, function: piece = {} } of choice?.delta.tool_calls ?? []) {
      const call = this.#calls.get(index) ?? { id: id ?? '', type: 'function', function: { name: '', arguments: '' } };
      call.function.name += piece.name ?? '';
      call.function.arguments += piece.arguments ?? '';
      this.#calls.set(index, call);
    }
    // What could not be read is text, and no call.
    const broken = choice?.tool_call_error?.index ?? null;
    if (broken !== null) this.#calls.delete(broken);
  }

  /** All of them. */
  get all(): ToolCall[] {
    return [...this.#calls.values()];
  }
}
