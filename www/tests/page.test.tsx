import { fireEvent, screen, waitFor, within } from '@testing-library/preact';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fakeLoads, fakeOptions, fakeRequests, fakeStored } from './fake-engine';
import { answered, ask, closePage, log, MODEL, message, newChat, open, prepare, type } from './open-page';

beforeEach(prepare);
afterEach(() => closePage());

const press = (key: string, init: KeyboardEventInit = {}): boolean =>
  fireEvent.keyDown(message(), { key, bubbles: true, ...init });

describe('asking', () => {
  it('loads the default model first and then answers', async () => {
    open();
    await ask('Why is the sky blue?');
    await answered();
    expect(fakeLoads.map(({ source }) => source)).toEqual([MODEL]);
    expect(log().textContent).toContain('Why is the sky blue?');
    expect(log().textContent).toContain(fakeOptions.answer);
    expect(log().textContent).toContain('42.7 tokens/s');
    expect(log().textContent).toContain('182 ms');
    expect(message().value).toBe('');
  });

  it('downloads nothing before the visitor asks for it', async () => {
    open();
    await screen.findByRole('button', { name: /SmolLM2.*Load/ });
    expect(fakeLoads).toHaveLength(0);
  });

  it('says which model is on this device already', async () => {
    fakeStored.add(MODEL);
    open();
    // Nothing was ever stored, as far as the browser knows: the engine is not asked.
    const card = await screen.findByRole('button', { name: /SmolLM2.*Load/ });
    expect(card.textContent).not.toContain('On this device');
    await new Promise((resolve) => {
      indexedDB.open('pagewise-models').onsuccess = resolve;
    });
    fireEvent.click(screen.getAllByRole('button', { name: 'Choose a model' })[0] as HTMLElement);
    await waitFor(() => expect(card.textContent).toContain('On this device'));
    expect(within(screen.getByRole('dialog')).getByText(/On this device/)).toBeTruthy();
    fakeStored.clear();
  });

  it('says that there is no such model, and offers the list', async () => {
    open('?model=nope&lang=xx');
    const notice = await screen.findByText(/no model “nope”/);
    expect(screen.getByText(/lang=xx in the address is not used.*en, zh/)).toBeTruthy();
    fireEvent.click(within(notice.parentElement as HTMLElement).getByRole('button', { name: 'Choose a model' }));
    expect((await screen.findByRole('dialog')).textContent).toContain('SmolLM2');
    expect(fakeLoads).toHaveLength(0);
  });

  it('loads the model of the address at once, with the settings of the address', async () => {
    open(`?model=${MODEL}&temperature=0&max_tokens=32&context_length=512&kv=f32`);
    await screen.findByRole('region', { name: 'Model status' });
    expect(fakeLoads[0]?.options).toMatchObject({ contextLength: 512, kv: 'f32' });
    await ask('Hi');
    await answered();
    expect(fakeRequests[0]).toMatchObject({ temperature: 0, max_tokens: 32, stream: true });
  });

  it('sends the whole conversation and the system prompt', async () => {
    open(`?model=${MODEL}&system=Be+brief.`);
    await ask('One');
    await answered();
    await ask('Two');
    await waitFor(() => expect(fakeRequests).toHaveLength(2));
    expect(fakeRequests[1]?.messages).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'One' },
      { role: 'assistant', content: fakeOptions.answer },
      { role: 'user', content: 'Two' },
    ]);
  });

  it('is done by Enter, but not by Shift+Enter or while composing', async () => {
    open(`?model=${MODEL}`);
    type('Hi');
    await screen.findByRole('region', { name: 'Model status' });
    press('Enter', { shiftKey: true });
    press('Enter', { isComposing: true });
    expect(fakeRequests).toHaveLength(0);
    expect(press('Enter')).toBe(false);
    await waitFor(() => expect(fakeRequests).toHaveLength(1));
  });

  it('is not possible with an empty message', async () => {
    open();
    type('   ');
    expect(screen.getByRole('button', { name: 'Send' })).toHaveProperty('disabled', true);
    press('Enter');
    expect(log().textContent).not.toContain('Loading');
  });

  it('says when an answer was cut', async () => {
    open(`?model=${MODEL}&max_tokens=3`);
    await ask('Hi');
    await answered();
    expect(log().textContent).toContain('Cut at max tokens');
  });

  it.each([
    ['with a context of 512 and the default of 512 max tokens', 24, 512],
    ['late in a long conversation', 8100, 8192],
  ])('answers %s', async (_when, promptTokens, contextLength) => {
    fakeOptions.promptTokens = promptTokens;
    open(`?model=${MODEL}&context_length=${contextLength}`);
    await ask('Hi');
    await answered();
    expect(log().textContent).toContain(fakeOptions.answer);
    expect(fakeRequests.map((request) => request.max_tokens)).toEqual([512, undefined]);
  });

  it('says when the context, not max tokens, cut an answer', async () => {
    fakeOptions.promptTokens = 509;
    open(`?model=${MODEL}&context_length=512`);
    await ask('Hi');
    await answered();
    expect(log().textContent).toContain('Cut: the context is full');
  });

  it('says that a conversation is too long when its messages alone are', async () => {
    fakeOptions.promptTokens = 512;
    open(`?model=${MODEL}&context_length=512`);
    await ask('Hi');
    await waitFor(() => expect(log().textContent).toContain('too long for the model'));
    expect(fakeRequests).toHaveLength(2);
  });
});

describe('stopping', () => {
  it.each(['button', 'Escape'])('by %s keeps what was written', async (how) => {
    fakeOptions.holdAnswerAt = 3;
    open(`?model=${MODEL}`);
    await ask('Hi');
    await waitFor(() => expect(log().textContent).toContain('Light bends as'));
    if (how === 'button') fireEvent.click(screen.getByRole('button', { name: 'Stop' }));
    else press('Escape');
    await waitFor(() => expect(log().textContent).toContain('Stopped'));
    expect(log().textContent).toContain('Light bends as');
    expect(screen.getByRole('button', { name: 'Send' })).toBeTruthy();
    // What is known by then: the fake's prompts have a token for each word.
    const figures = within(log()).getByLabelText('What this answer cost').textContent ?? '';
    expect(figures).toMatch(/^cached0computed\d+generated3TTFT\d/);
  });

  it('while the prompt is read says how far that was', async () => {
    Object.assign(fakeOptions, { holdPrompt: true, promptTokens: 123 });
    open(`?model=${MODEL}`);
    await ask('Hi');
    await screen.findByText('Reading your message: 62 of 123 tokens');
    fireEvent.click(screen.getByRole('button', { name: 'Stop' }));
    await waitFor(() => expect(log().textContent).toContain('Stopped'));
    expect(within(log()).getByLabelText('What this answer cost').textContent).toBe('cached0computed62generated0');
  });

  it('while the model loads ends the load', async () => {
    fakeOptions.holdLoadAt = 0.5;
    open();
    await ask('Hi');
    await waitFor(() => expect(log().textContent).toContain('49.2 MB of 98.4 MB'));
    fireEvent.click(screen.getByRole('button', { name: 'Stop' }));
    await waitFor(() => expect(log().textContent).toContain('Stopped'));
    expect(fakeLoads[0]?.options.signal?.aborted).toBe(true);
  });
});

describe('after an answer', () => {
  it('regenerates it with the same messages', async () => {
    open(`?model=${MODEL}`);
    await ask('Hi');
    await answered();
    fakeOptions.answer = 'Another one.';
    fireEvent.click(screen.getByRole('button', { name: 'Regenerate' }));
    await waitFor(() => expect(log().textContent).toContain('Another one.'));
    expect(log().textContent).not.toContain('Light bends');
    expect(fakeRequests[1]?.messages).toEqual(fakeRequests[0]?.messages);
  });

  it('starts a new chat that knows nothing of the old one', async () => {
    open(`?model=${MODEL}`);
    await ask('Old');
    await answered();
    fireEvent.click(newChat());
    await waitFor(() => expect(log().textContent).not.toContain('Old'));
    await ask('New');
    await waitFor(() => expect(fakeRequests).toHaveLength(2));
    expect(fakeRequests[1]?.messages).toEqual([{ role: 'user', content: 'New' }]);
  });

  it('stops the old answer when a new chat starts', async () => {
    fakeOptions.holdAnswerAt = 3;
    open(`?model=${MODEL}`);
    await ask('Old');
    await waitFor(() => expect(log().textContent).toContain('Light bends as'));
    fireEvent.click(newChat());
    expect(log().textContent).not.toContain('Light');
  });
});

describe('problems', () => {
  it.each([
    ['missing', 'This browser has no WebGPU'],
    ['null', 'No GPU that WebGPU can use'],
  ])('without a GPU (%s) the page says so', async (kind, title) => {
    const value = kind === 'missing' ? undefined : { requestAdapter: () => Promise.resolve(null) };
    Object.defineProperty(navigator, 'gpu', { value, configurable: true });
    open(`?model=${MODEL}`);
    expect((await screen.findByRole('alert')).textContent).toContain(title);
    expect(message().disabled).toBe(true);
    expect(fakeLoads).toHaveLength(0);
  });

  it.each([
    ['out_of_memory', 'Not enough GPU memory'],
    ['unsupported_model', 'This model is not supported'],
    ['corrupt_model', 'This is not a readable GGUF file'],
    ['network', 'The model could not be downloaded'],
  ])('of loading (%s) come with advice and can be retried', async (code, title) => {
    open(`?model=https://example.com/${code}.gguf`);
    const alert = await screen.findByRole('alert');
    expect(alert.textContent).toContain(title);
    expect(within(alert).getAllByRole('listitem').length).toBeGreaterThan(0);
    expect(within(alert).getByRole('button', { name: 'Choose a model' })).toBeTruthy();
  });

  it('while answering keep the question and what was written, and can be retried', async () => {
    fakeOptions.failCode = 'device_lost';
    open(`?model=${MODEL}`);
    await ask('Hi there');
    const alert = await screen.findByRole('alert');
    expect(alert.textContent).toContain('The GPU was lost');
    expect(log().textContent).toContain('Hi there');
    expect(log().textContent).toContain('Light bends as it');
    fakeOptions.failCode = null;
    fireEvent.click(within(alert).getByRole('button', { name: 'Try again' }));
    await answered();
    // The lost device's model was loaded anew.
    expect(fakeLoads).toHaveLength(2);
    expect(screen.queryByRole('alert')).toBeNull();
  });

  it('of the address are told and can be dismissed', async () => {
    open('?temperature=9');
    const notice = await screen.findByText(/temperature=9/);
    fireEvent.click(screen.getByRole('button', { name: 'Dismiss' }));
    await waitFor(() => expect(notice.isConnected).toBe(false));
  });

  it('of a dropped file show the engine’s message', async () => {
    open();
    const drop = new Event('drop', { bubbles: true, cancelable: true });
    Object.assign(drop, { dataTransfer: { types: ['Files'], files: [new File(['PK'], 'corrupt_model.gguf')] } });
    fireEvent(window, drop);
    expect((await screen.findByRole('alert')).textContent).toContain('not a GGUF file: it begins with 50 4b 03 04');
    expect(drop.defaultPrevented).toBe(true);
  });

  it('give the question back when there is no model to load', async () => {
    vi.stubGlobal('fetch', () => Promise.resolve(new Response('', { status: 404 })));
    open();
    await ask('Hi there');
    expect(await screen.findByRole('dialog', { name: 'Choose a model' })).toBeTruthy();
    await waitFor(() => expect(message().value).toBe('Hi there'));
  });
});

describe('settings', () => {
  it('reach the next request and the storage', async () => {
    open(`?model=${MODEL}`);
    fireEvent.click(screen.getByRole('button', { name: 'Settings' }));
    const dialog = await screen.findByRole('dialog', { name: 'Settings' });
    const temperature = within(dialog).getByRole('textbox', { name: 'Temperature' });
    fireEvent.input(temperature, { target: { value: '0' } });
    fireEvent.input(within(dialog).getByRole('textbox', { name: 'Seed' }), { target: { value: '7' } });
    fireEvent.click(within(dialog).getByRole('button', { name: 'Close' }));
    await ask('Hi');
    await answered();
    expect(fakeRequests[0]).toMatchObject({ temperature: 0, seed: 7 });
    expect(JSON.parse(localStorage.getItem('pagewise.settings') ?? '')).toMatchObject({ temperature: 0, seed: 7 });
  });

  it('refuse a number out of bounds and say what is allowed', async () => {
    const app = open();
    fireEvent.click(screen.getByRole('button', { name: 'Settings' }));
    const temperature = await screen.findByRole('textbox', { name: 'Temperature' });
    fireEvent.input(temperature, { target: { value: '9' } });
    await waitFor(() => expect(temperature.getAttribute('aria-invalid')).toBe('true'));
    expect(screen.getByText('A number from 0 to 2.')).toBeTruthy();
    expect(app.settings.value.temperature).toBe(0.7);
  });

  it('of the address are not stored with a change of another', () => {
    const app = open('?temperature=0');
    app.set({ topK: 3 });
    expect(JSON.parse(localStorage.getItem('pagewise.settings') ?? '')).toMatchObject({ temperature: 0.7, topK: 3 });
    app.set({ temperature: 0.1 });
    expect(JSON.parse(localStorage.getItem('pagewise.settings') ?? '')).toMatchObject({ temperature: 0.1 });
  });

  it('are all that is stored', async () => {
    open(`?model=${MODEL}`);
    await ask('Secret');
    await answered();
    expect(JSON.stringify({ ...localStorage })).not.toContain('Secret');
  });
});

describe('screen readers', () => {
  it('hear the start, then whole paragraphs, then the end', async () => {
    fakeOptions.answer = 'First one.\n\nSecond one.';
    const app = open(`?model=${MODEL}`);
    const heard: string[] = [];
    app.announcement.subscribe((text) => heard.push(text));
    await ask('Hi');
    await answered();
    await waitFor(() => expect(heard.join('|')).toContain('End of answer.'));
    expect(heard[1]).toBe('Answering');
    const words = heard.slice(2).join('\n');
    expect(words.match(/First one\./g)).toHaveLength(1);
    expect(words.match(/Second one\./g)).toHaveLength(1);
  });
});
