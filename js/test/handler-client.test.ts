import OpenAI from 'openai';
import { describe, expect, test, vi } from 'vitest';
import { createFetch, type Engine, PagewiseError } from '../src/index.js';
import { messages, refuse, start } from './handler-setup.js';

describe("OpenAI's own client", () => {
  const client = (engine: Engine): OpenAI =>
    new OpenAI({ apiKey: 'none', maxRetries: 0, fetch: createFetch(engine) as never });

  test('needs no address, and nothing goes to the network', async () => {
    const network = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('the network was asked'));
    const { engine } = await start();
    const openai = client(engine);
    const params = { model: 'fake-model', messages: [...messages] };
    const { data, response } = await openai.chat.completions.create(params).withResponse();
    expect(data.choices[0]?.message.content).toBe('Hello');
    expect(response.headers.get('x-pagewise-queue-depth')).toBe('0');
    let text = '';
    for await (const chunk of await openai.chat.completions.create({ ...params, stream: true })) {
      text += chunk.choices[0]?.delta.content ?? '';
    }
    expect(text).toBe('Hello');
    const unknown = openai.models.retrieve('other');
    await expect(unknown).rejects.toMatchObject({ constructor: OpenAI.NotFoundError, param: 'model' });
    expect(network).not.toHaveBeenCalled();
    network.mockRestore();
  });

  test('throws its own errors, also in the middle of a stream', async () => {
    const { engine, worker } = await start();
    const openai = client(engine);
    const params = { model: 'fake-model', messages: [...messages] };
    await expect(openai.chat.completions.create({ ...params, n: 99 })).rejects.toMatchObject({
      constructor: OpenAI.BadRequestError,
      status: 400,
      param: 'n',
      code: 'invalid_value',
    });
    const stream = await openai.chat.completions.create({ ...params, stream: true });
    worker.engine.step = () => Promise.reject({ code: 'device_lost', message: 'gone' });
    const read = async (): Promise<void> => {
      for await (const _ of stream);
    };
    await expect(read()).rejects.toMatchObject({ constructor: OpenAI.APIError, code: 'device_lost' });
    refuse(worker, { code: 'queue_full', message: 'full' });
    await expect(openai.chat.completions.create(params)).rejects.toBeInstanceOf(OpenAI.RateLimitError);
  });

  test('other addresses are a 404', async () => {
    const { engine } = await start();
    const answer = createFetch(engine, { baseURL: 'http://localhost/api' });
    expect((await answer('http://localhost/api/models')).status).toBe(200);
    expect((await answer('http://localhost/v1/models')).status).toBe(404);
    expect((await answer('http://elsewhere/api/models')).status).toBe(404);
    expect(() => createFetch(engine, { url: 'x' } as never)).toThrow(PagewiseError);
  });
});
