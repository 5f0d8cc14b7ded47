// What a strict consumer writes: all of it has to be known without a cast, and without the types of anything else.
import {
  type ChatCompletion,
  type ChatMessage,
  type ChatRequestMessage,
  ConversationBudget,
  createFetch,
  Engine,
  type ErrorCode,
  type LoadProgress,
  PagewiseError,
  registerRoute,
  type Stream,
} from 'pagewise';
import { type AiLanguageModel, createPagewise } from 'pagewise/ai-sdk';
import { createLanguageModel, type LanguageModelSession } from 'pagewise/prompt-api';
import { type Place, Router } from 'pagewise/remote';

const messages: ChatMessage[] = [{ role: 'user', content: 'Hi' }];

export async function main(source: File): Promise<string> {
  const onProgress = ({ phase, loadedBytes }: LoadProgress): void => console.log(phase, loadedBytes);
  const engine = await Engine.load(source, { onProgress, contextLength: 256, store: true });
  const answer: ChatCompletion = await engine.chat.completions.create({ messages, temperature: 0 });
  const cached: number = answer.usage.prompt_tokens_details.cached_tokens;
  const stream = await engine.chat.completions.create({ messages, stream: true });
  let text = answer.choices[0]?.message.content ?? '';
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  const fetched: Response = await createFetch(engine)('/v1/models');
  const { baseURL } = await registerRoute(engine, { scriptURL: '/pagewise-service-worker.js' });
  // @ts-expect-error: not a field of a request
  await engine.completions.create({ prompt: text, temprature: 0 }).catch(codeOf);
  return `${cached} ${fetched.status} ${baseURL}`;
}

export async function bridges(engine: Engine): Promise<[AiLanguageModel, LanguageModelSession, Place]> {
  const router = await Router.load('model', {
    policy: 'prefer-local',
    remote: { baseURL: 'https://models.example/v1' },
  });
  const session = await createLanguageModel(engine).create({
    initialPrompts: [{ role: 'system', content: 'Be brief' }],
  });
  const text: string = await session.prompt('Hi');
  const { computed_on } = await router.chat.completions.create({
    messages: [...messages, { role: 'user', content: text }],
  });
  return [createPagewise(router)(), session, computed_on];
}

/** A conversation: an answer is sent back as it came, calls and all. */
export async function converse(engine: Engine, contents: readonly string[]): Promise<ChatRequestMessage[]> {
  const conversation: ChatRequestMessage[] = [{ role: 'system', content: 'Be brief' }];
  for (const content of contents) {
    conversation.push({ role: 'user', content });
    const { choices } = await engine.chat.completions.create({ messages: conversation, max_tokens: 8 });
    for (const { message } of choices) conversation.push(message);
  }
  const budget = new ConversationBudget({ contextTokens: 256, answerTokens: 8, countTokens: (all) => all.length });
  await engine.cache.warm((await budget.fit(conversation)).messages);
  await engine.applyTemplate(conversation);
  return conversation;
}

export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof PagewiseError ? error.code : undefined;
}

export type Chunk = Awaited<ReturnType<Engine['completions']['create']>> extends Stream<infer C> ? C : never;
