/**
 * What an answer has to be, in OpenAI's shape.
 */

/** What an answer has to be. Answers in JSON are on one line; `max_tokens` can cut them (`finish_reason: 'length'`). */
export type ResponseFormat =
  | {
      /** Any text. */
      type: 'text';
    }
  | {
      /** A JSON object. The prompt should ask for it too. */
      type: 'json_object';
    }
  | {
      /** JSON that a schema allows. */
      type: 'json_schema';
      /** The schema. */
      json_schema: ResponseSchema;
    };

/** A schema of answers. */
export interface ResponseSchema {
  /** Letters, digits, `_` and `-`, up to 64; has no effect. */
  name: string;
  /** Has no effect: the prompt is as the messages say. */
  description?: string | null;
  /** A JSON Schema. A keyword that is not supported is an error that names it. */
  schema: object;
  /** The schema is always enforced: `true` and `false` are the same. */
  strict?: boolean | null;
}
