/**
 * `tools` and what belongs to them, checked.
 */

import { bad, type Fields, fieldsOf, isPlainObject, show } from './fields.js';
import { checkMessages } from './message-request.js';
import type { EngineConversation, EngineTools } from './protocol.js';
import type { ChatTool } from './tool-types.js';

const MAX_TOOLS = 128;
const TOOL_FIELDS: readonly string[] = ['type', 'function'];
const FUNCTION_FIELDS: readonly string[] = ['name', 'description', 'parameters', 'strict'];
const NAME = /^[\w-]{1,64}$/;
const CHOICES: readonly unknown[] = ['auto', 'none', 'required'];

/** What a request says of tools; undefined if its answers have no calls. */
export function checkTools(request: Fields): EngineTools | undefined {
  const { tools, tool_choice: choice = null, parallel_tool_calls: parallel = null } = request;
  if (tools === undefined || tools === null) {
    // `none` and `auto` are what there is without.
    if (choice !== null && choice !== 'none' && choice !== 'auto') throw bad('tool_choice: only with tools');
    if (parallel !== null) throw bad('parallel_tool_calls: only with tools');
    return undefined;
  }
  const list = checkToolList(tools);
  const names = list.map((tool) => tool.function.name);
  if (parallel !== null && typeof parallel !== 'boolean') {
    throw bad(`parallel_tool_calls: true or false is needed, ${show(parallel)} given`);
  }
  const engineTools: EngineTools = { list, isRequired: false, isParallel: parallel ?? true };
  if (choice === 'none') return undefined;
  if (choice === null || choice === 'auto') return engineTools;
  engineTools.isRequired = true;
  if (choice !== 'required') engineTools.only = checkNamed(choice, names);
  return engineTools;
}

/** Functions that the model is told of, at least one. */
export function checkToolList(tools: unknown): ChatTool[] {
  if (!Array.isArray(tools) || tools.length === 0) {
    throw bad(`tools: a list of at least one function is needed, ${show(tools)} given`);
  }
  if (tools.length > MAX_TOOLS) throw bad(`tools: ${tools.length} given, ${MAX_TOOLS} allowed`);
  const list = Array.from(tools as unknown[], checkTool);
  const names = list.map((tool) => tool.function.name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw bad(`tools: the function ${show(twice)} is given twice`);
  return list;
}

/** Messages as a template gets them, with tools where there are any. */
export function checkRendered(messages: unknown, tools: unknown): EngineConversation {
  const checked = { messages: checkMessages(messages) };
  return tools === undefined || tools === null ? checked : { ...checked, tools: checkToolList(tools) };
}

function checkTool(value: unknown, index: number): ChatTool {
  const where = `tools[${index}]`;
  const tool = fieldsOf(value, TOOL_FIELDS, where);
  if (tool.type !== 'function') throw bad(`${where}.type: "function" is needed, ${show(tool.type)} given`);
  const { name, description, parameters, strict } = fieldsOf(tool.function, FUNCTION_FIELDS, `${where}.function`);
  if (typeof name !== 'string' || !NAME.test(name)) {
    const needed = 'up to 64 letters, digits, _ and - are needed';
    throw bad(`${where}.function.name: ${needed}, ${show(name)} given`);
  }
  const checked: ChatTool = { type: 'function', function: { name } };
  if (description !== undefined && description !== null) {
    if (typeof description !== 'string') {
      throw bad(`${where}.function.description: a string is needed, ${show(description)} given`);
    }
    checked.function.description = description;
  }
  if (parameters !== undefined && parameters !== null) {
    if (!isPlainObject(parameters)) {
      throw bad(`${where}.function.parameters: a JSON Schema is needed, ${show(parameters)} given`);
    }
    checked.function.parameters = parameters;
  }
  if (strict !== undefined && strict !== null) {
    if (typeof strict !== 'boolean') {
      throw bad(`${where}.function.strict: true or false is needed, ${show(strict)} given`);
    }
    // What is not asked for is not shown to the model.
    if (strict) checked.function.strict = true;
  }
  return checked;
}

/** The index of the function that a choice names. */
function checkNamed(choice: unknown, names: readonly string[]): number {
  if (!isPlainObject(choice)) {
    const needed = `${CHOICES.map(show).join(', ')} or {type: "function", function: {name}} is needed`;
    throw bad(`tool_choice: ${needed}, ${show(choice)} given`);
  }
  const { type, function: named } = fieldsOf(choice, TOOL_FIELDS, 'tool_choice');
  if (type !== 'function') throw bad(`tool_choice.type: "function" is needed, ${show(type)} given`);
  const { name } = fieldsOf(named, ['name'], 'tool_choice.function');
  const index = names.indexOf(name as string);
  if (index < 0) throw bad(`tool_choice.function.name: one of the tools is needed, ${show(name)} given`);
  return index;
}
