/**
 * What an answer has to be: `response_format`, `grammar` and `regex`. Schemas, expressions and grammars themselves are checked by
 * whoever compiles them.
 */

import { bad, type Fields, fieldsOf, isPlainObject, show } from './fields.js';
import type { EngineConstraint } from './protocol.js';

/** Fields that constrain an answer; at most one of them may. */
export const CONSTRAINT_FIELDS = ['response_format', 'grammar', 'regex'] as const;

const FORMAT = 'response_format';
const SCHEMA = `${FORMAT}.json_schema`;
const MAX_NAME = 64;

/** The constraint that a request asks for, if any. */
export function checkConstraint(fields: Fields): EngineConstraint | undefined {
  const format = checkFormat(fields.response_format);
  const grammar = text(fields, 'grammar');
  const regex = text(fields, 'regex');
  const asked = CONSTRAINT_FIELDS.filter((name) => ({ response_format: format, grammar, regex })[name] !== undefined);
  if (asked.length > 1) throw bad(`${asked[1]}: not together with ${asked[0]}; one of them is needed`);
  if (asked.length > 0 && fields.allowed_token_ids !== undefined && fields.allowed_token_ids !== null) {
    throw bad(`allowed_token_ids: not together with ${asked[0]}, which allows tokens too`);
  }
  if (grammar !== undefined) return { kind: 'lark', grammar, schemas: [], field: 'grammar' };
  if (regex !== undefined) return { kind: 'regex', pattern: regex, field: 'regex' };
  return format;
}

function text(fields: Fields, name: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value === 'string' && value !== '') return value;
  throw bad(`${name}: a text that is not empty is needed, ${show(value)} given`);
}

function checkFormat(value: unknown): EngineConstraint | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isPlainObject(value)) throw bad(`${FORMAT}: a plain object is needed, ${show(value)} given`);
  const { type } = value;
  if (type === 'json_schema') {
    return checkSchema(fieldsOf(value, ['type', 'json_schema'], FORMAT).json_schema);
  }
  if (type !== 'text' && type !== 'json_object') {
    throw bad(`${FORMAT}.type: one of text, json_object, json_schema is needed, ${show(type)} given`);
  }
  fieldsOf(value, ['type'], FORMAT);
  if (type === 'text') return undefined;
  return { kind: 'json_schema', name: 'object', json: '{"type":"object"}', field: FORMAT };
}

/** `strict` or not, an answer is what the schema allows; `name` and `description` have no effect. */
function checkSchema(value: unknown): EngineConstraint {
  const { name, description, schema, strict } = fieldsOf(value, ['name', 'description', 'schema', 'strict'], SCHEMA);
  if (typeof name !== 'string' || !new RegExp(`^[\\w-]{1,${MAX_NAME}}$`).test(name)) {
    throw bad(`${SCHEMA}.name: letters, digits, _ and -, up to ${MAX_NAME}, are needed, ${show(name)} given`);
  }
  if (description !== undefined && description !== null && typeof description !== 'string') {
    throw bad(`${SCHEMA}.description: a string is needed, ${show(description)} given`);
  }
  if (strict !== undefined && strict !== null && typeof strict !== 'boolean') {
    throw bad(`${SCHEMA}.strict: true or false is needed, ${show(strict)} given`);
  }
  return { kind: 'json_schema', name, json: schemaJson(schema, `${SCHEMA}.schema`), field: `${SCHEMA}.schema` };
}

/** A JSON Schema as JSON; `field` is what errors call it. */
export function schemaJson(schema: unknown, field: string): string {
  if (!isPlainObject(schema) && typeof schema !== 'boolean') {
    throw bad(`${field}: a JSON Schema (a plain object) is needed, ${show(schema)} given`);
  }
  let json: string | undefined;
  try {
    json = JSON.stringify(schema);
  } catch (cause) {
    throw bad(`${field}: it cannot be written as JSON (${cause})`);
  }
  // A `toJSON` of its own may say that there is nothing.
  if (json === undefined) throw bad(`${field}: it cannot be written as JSON`);
  return json;
}
