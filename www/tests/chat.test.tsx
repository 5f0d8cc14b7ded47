/** The chat as a visitor uses it: conversations that stay, branches, files, prompts, the budget. */
import { cleanup, fireEvent, screen, waitFor, within } from '@testing-library/preact';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chatOf } from '../src/chat/context';
import { Library } from '../src/chat/library';
import { setLang } from '../src/i18n';
import { fakeOptions, fakeRequests } from './fake-engine';
import { answered, ask, closePage, log, MODEL, message, newChat, open, prepare, type } from './open-page';

beforeEach(prepare);
afterEach(() => closePage());

const items = (): string[] =>
  screen.queryAllByRole('link').flatMap((link) => link.querySelector('.item-title')?.textContent ?? []);
const button = (name: string | RegExp): HTMLElement => {
  const all = screen.getAllByRole('button', { name });
  return all.at(-1) as HTMLElement;
};
const contents = (request: number): string[] =>
  (fakeRequests[request]?.messages ?? []).map(({ content }) => String(content));

async function reopen(): Promise<void> {
  const { hash } = location;
  await closePage({ keep: true });
  cleanup();
  expect(location.hash).toBe(hash);
  open(`?model=${MODEL}`);
  await screen.findByRole('textbox', { name: 'Message' });
}

describe('conversations', () => {
  it('are listed, named after the first question, and outlive a reload', async () => {
    open(`?model=${MODEL}`);
    await ask('Why is the sky blue?');
    await answered();
    await waitFor(() => expect(items()).toEqual(['Why is the sky blue?']));
    await reopen();
    await waitFor(() => expect(log().textContent).toContain('Why is the sky blue?'));
    expect(log().textContent).toContain(fakeOptions.answer);
    expect(log().textContent).toContain('42.7 tokens/s');
    await ask('And at night?');
    await waitFor(() => expect(fakeRequests).toHaveLength(2));
    expect(contents(1)).toEqual(['Why is the sky blue?', fakeOptions.answer, 'And at night?']);
  });

  it('keep what was written when their page was closed while answering', async () => {
    fakeOptions.holdAnswerAt = 3;
    open(`?model=${MODEL}`);
    await ask('Hi');
    await waitFor(() => expect(log().textContent).toContain('Light bends as'));
    await waitFor(() => expect(items()).toEqual(['Hi']));
    fakeOptions.holdAnswerAt = null;
    await reopen();
    await waitFor(() => expect(log().textContent).toContain('Interrupted'));
    expect(log().textContent).toContain('Light');
    expect(screen.getByRole('button', { name: 'Regenerate' })).toBeTruthy();
  });

  it('can be renamed, deleted, and brought back', async () => {
    open(`?model=${MODEL}`);
    await ask('First');
    await answered();
    fireEvent.click(await screen.findByRole('button', { name: 'More about “First”' }));
    fireEvent.input(screen.getByRole('textbox', { name: 'Title' }), { target: { value: 'Renamed' } });
    fireEvent.click(screen.getByRole('button', { name: 'Rename' }));
    await waitFor(() => expect(items()).toEqual(['Renamed']));
    fireEvent.click(screen.getByRole('button', { name: 'More about “Renamed”' }));
    fireEvent.click(screen.getByRole('button', { name: 'Delete conversation' }));
    await waitFor(() => expect(items()).toEqual([]));
    await waitFor(() => expect(log().textContent).not.toContain('First'));
    fireEvent.click(await screen.findByRole('button', { name: 'Undo' }));
    await waitFor(() => expect(items()).toEqual(['Renamed']));
    await waitFor(() => expect(log().textContent).toContain('First'));
  });

  it('are found by what was said in them', async () => {
    open(`?model=${MODEL}`);
    await ask('About rainbows');
    await answered();
    fakeOptions.answer = 'A lighthouse stands alone.';
    fireEvent.click(newChat());
    await ask('Poem');
    await answered();
    fireEvent.input(screen.getByRole('searchbox'), { target: { value: 'LIGHTHOUSE' } });
    await waitFor(() => expect(items()).toEqual(['Poem']));
    expect(screen.getByText('lighthouse', { selector: 'mark' })).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'Clear search' }));
    await waitFor(() => expect(items()).toHaveLength(2));
  });

  it('follow what another tab does', async () => {
    const session = open(`?model=${MODEL}`);
    await ask('Shared');
    await answered();
    const other = new Library(() => undefined);
    await waitFor(() => expect(other.list.value).toHaveLength(1));
    const { id } = chatOf(session).thread.value;
    await other.update(id, { title: 'From the other tab', isTitled: true });
    await waitFor(() => expect(items()).toEqual(['From the other tab']));
    await ask('More');
    await answered(2);
    await waitFor(() => expect(other.list.value?.[0]?.title).toBe('From the other tab'));
    await other.delete(id);
    await waitFor(() => expect(items()).toEqual([]));
    await waitFor(() => expect(log().textContent).not.toContain('Shared'));
    other.close();
  });

  it('go on being answered while another one is shown', async () => {
    fakeOptions.holdAnswerAt = 3;
    const session = open(`?model=${MODEL}`);
    await ask('Slow');
    await waitFor(() => expect(log().textContent).toContain('Light bends as'));
    fireEvent.click(newChat());
    await waitFor(() => expect(log().textContent).not.toContain('Slow'));
    expect(chatOf(session).answering.running.value.size).toBe(1);
    fireEvent.click(await screen.findByRole('link', { name: /Slow/ }));
    location.hash = screen.getByRole('link', { name: /Slow/ }).getAttribute('href') ?? '';
    await waitFor(() => expect(log().textContent).toContain('Light bends as'));
    fireEvent.click(screen.getByRole('button', { name: 'Stop' }));
    await waitFor(() => expect(log().textContent).toContain('Stopped'));
  });
});

describe('branches', () => {
  it('come from changed questions, share what is above, and can be gone through', async () => {
    open(`?model=${MODEL}`);
    await ask('One');
    await answered();
    await ask('Two');
    await answered(2);
    fireEvent.click(button('Edit message'));
    fireEvent.input(screen.getByRole('textbox', { name: 'Edit message' }), { target: { value: 'Three' } });
    fireEvent.click(screen.getByRole('button', { name: 'Send as a new branch' }));
    await waitFor(() => expect(fakeRequests).toHaveLength(3));
    await answered(2);
    expect(contents(2)).toEqual(['One', fakeOptions.answer, 'Three']);
    expect(log().textContent).not.toContain('Two');
    expect(screen.getByText('2/2')).toBeTruthy();
    fireEvent.click(screen.getByRole('button', { name: 'Previous branch' }));
    await waitFor(() => expect(log().textContent).toContain('Two'));
    expect(log().textContent).not.toContain('Three');

    fireEvent.click(screen.getByRole('button', { name: 'Branches' }));
    const tree = await screen.findByRole('dialog', { name: 'Branches' });
    expect(within(tree).getAllByRole('button', { name: /You|Answer/ })).toHaveLength(6);
    fireEvent.click(within(tree).getByRole('button', { name: /Three/ }));
    await waitFor(() => expect(log().textContent).toContain('Three'));
  });

  it('reuse in the cache what they share', async () => {
    open(`?model=${MODEL}`);
    await ask('One');
    await answered();
    fireEvent.click(screen.getByRole('button', { name: 'Regenerate' }));
    await waitFor(() => expect(screen.getByText('2/2')).toBeTruthy());
    await answered();
    // Of `<user> One` all but the last token, which is always computed.
    expect(log().textContent).toMatch(/cached1computed1generated9/);
  });

  it('come from changed answers without asking again', async () => {
    open(`?model=${MODEL}`);
    await ask('One');
    await answered();
    fireEvent.click(button('Edit answer'));
    fireEvent.input(screen.getByRole('textbox', { name: 'Edit answer' }), { target: { value: 'My own words.' } });
    fireEvent.click(screen.getByRole('button', { name: 'Keep as a new branch' }));
    await waitFor(() => expect(log().textContent).toContain('My own words.'));
    expect(fakeRequests).toHaveLength(1);
    await ask('Next');
    await waitFor(() => expect(fakeRequests).toHaveLength(2));
    expect(contents(1)).toEqual(['One', 'My own words.', 'Next']);
  });

  it('leave a message alone when editing is ended by Escape', async () => {
    open(`?model=${MODEL}`);
    await ask('One');
    await answered();
    fireEvent.click(button('Edit message'));
    const box = screen.getByRole('textbox', { name: 'Edit message' });
    expect(document.activeElement).toBe(box);
    fireEvent.input(box, { target: { value: 'Changed' } });
    fireEvent.keyDown(box, { key: 'Escape' });
    expect(screen.queryByRole('textbox', { name: 'Edit message' })).toBeNull();
    expect(log().textContent).toContain('One');
    expect(fakeRequests).toHaveLength(1);
  });
});

describe('files', () => {
  it('are attached, shown, taken away, and sent as fenced text', async () => {
    open(`?model=${MODEL}`);
    await screen.findByRole('textbox', { name: 'Message' });
    const files = [new File(['alpha'], 'a.txt'), new File(['beta'], 'b.txt'), new File([new Uint8Array([0])], 'c.png')];
    fireEvent.change(screen.getByLabelText('Attach text files', { selector: 'input' }), { target: { files } });
    await screen.findByText('c.png is not a text file (UTF-8).');
    fireEvent.click(screen.getByRole('button', { name: 'Remove a.txt' }));
    await waitFor(() => expect(screen.queryByText('a.txt')).toBeNull());
    await ask('What is it?');
    await answered();
    expect(contents(0)).toEqual(['```b.txt\nbeta\n```\n\nWhat is it?']);
    expect(within(log()).getByText('b.txt')).toBeTruthy();
  });
});

describe('a refused attachment', () => {
  it.each(['sending', 'a new chat'])('is no longer told of after %s', async (what) => {
    open(`?model=${MODEL}`);
    await screen.findByRole('textbox', { name: 'Message' });
    const files = [new File([new Uint8Array([0, 1])], 'program.bin')];
    fireEvent.change(screen.getByLabelText('Attach text files', { selector: 'input' }), { target: { files } });
    await screen.findByText(/program\.bin is not a text file/);
    if (what === 'sending') await ask('Without it, then.');
    else fireEvent.click(newChat());
    await waitFor(() => expect(screen.queryByText(/program\.bin is not a text file/)).toBeNull());
    // Nothing goes on behind the test.
    if (what === 'sending') await answered();
  });
});

describe('system prompts', () => {
  it('say why they cannot be used or saved', async () => {
    open(`?model=${MODEL}`);
    fireEvent.click(await screen.findByRole('button', { name: 'System prompt' }));
    const dialog = await screen.findByRole('dialog', { name: 'System prompt' });
    expect(within(dialog).queryByRole('button', { name: 'In use' })).toBeNull();
    expect(within(dialog).getByRole('button', { name: 'Use in this conversation' })).toHaveProperty('disabled', true);
    const name = within(dialog).getByRole('textbox', { name: 'Name' });
    fireEvent.input(name, { target: { value: 'my prompt' } });
    const reason = document.getElementById(name.getAttribute('aria-describedby') ?? '');
    await waitFor(() => expect(reason?.textContent).toContain('no spaces'));
    fireEvent.input(name, { target: { value: 'mine' } });
    await waitFor(() => expect(reason?.textContent).toContain('nothing to save yet'));
    const [field] = within(dialog).getAllByRole('textbox');
    fireEvent.input(field as HTMLElement, { target: { value: 'Be brief.' } });
    fireEvent.click(await within(dialog).findByRole('button', { name: 'Save as mine_v1' }));
    await waitFor(() => expect(reason?.textContent).toContain('kept as mine_v1 already'));
  });

  it('have names and versions, and say what a change costs', async () => {
    const session = open(`?model=${MODEL}`);
    await ask('One');
    await answered();
    fireEvent.click(screen.getByRole('button', { name: 'System prompt' }));
    const dialog = await screen.findByRole('dialog', { name: 'System prompt' });
    const [field] = within(dialog).getAllByRole('textbox');
    fireEvent.input(field as HTMLElement, { target: { value: 'Be brief.' } });
    // `<user> One <assistant>` and nine words: all of it is lost.
    await within(dialog).findByText(/empties the cache .*: 11 tokens/);
    fireEvent.input(within(dialog).getByRole('textbox', { name: 'Name' }), { target: { value: 'support' } });
    fireEvent.click(within(dialog).getByRole('button', { name: 'Save as support_v1' }));
    await within(dialog).findByText('support_v1', { selector: '.field-head' });
    fireEvent.click(within(dialog).getByRole('button', { name: 'Use in this conversation' }));
    expect(chatOf(session).thread.value.record.value.system).toEqual({
      text: 'Be brief.',
      name: 'support',
      version: 1,
    });

    fireEvent.input(field as HTMLElement, { target: { value: 'Be kind.' } });
    fireEvent.click(await within(dialog).findByRole('button', { name: 'Save as support_v2' }));
    fireEvent.click(await within(dialog).findByRole('button', { name: 'Put support_v1 into the field' }));
    await waitFor(() => expect(field).toHaveProperty('value', 'Be brief.'));
    fireEvent.click(within(dialog).getByRole('button', { name: 'Close' }));
    await ask('Two');
    await waitFor(() => expect(fakeRequests).toHaveLength(2));
    expect(contents(1)[0]).toBe('Be brief.');
    expect(screen.getByRole('button', { name: 'System prompt: support_v1' })).toBeTruthy();
  });
});

describe('the context', () => {
  it('is counted in exact tokens, the draft included, with what is cached of it', async () => {
    open(`?model=${MODEL}`);
    await ask('One');
    await answered();
    type('three more words');
    // `<user> One <assistant>` + 9 words + `<user>` + 3.
    await screen.findByRole('button', { name: /^Context: 16 of 8,192 tokens, 12 in the cache/ });
  });

  it('drops old turns where the budget says so, and says how many are left out', async () => {
    fakeOptions.contextLength = 64;
    const session = open(`?model=${MODEL}&max_tokens=16`);
    await ask('One');
    await answered();
    chatOf(session).setBudget({ overflow: 'drop_oldest_turns', keepTurns: 1, cutTo: 0.5 });
    for (const [index, text] of ['Two', 'Three', 'Four', 'Five'].entries()) {
      await ask(text);
      await answered(index + 2);
    }
    expect(contents(4)).not.toContain('One');
    expect(contents(4).at(-1)).toBe('Five');
    fireEvent.click(screen.getByRole('button', { name: /^Context:/ }));
    expect(await screen.findByText(/old messages are not sent/)).toBeTruthy();
  });

  it('sums up old turns where the budget says so, and lets the summary be edited', async () => {
    fakeOptions.contextLength = 160;
    fakeOptions.answer = 'word '.repeat(12).trim();
    const session = open(`?model=${MODEL}&max_tokens=16`);
    await ask('One');
    await answered();
    chatOf(session).setBudget({ overflow: 'summarize', keepTurns: 1, cutTo: 0.7 });
    let count = 1;
    while (!chatOf(session).thread.value.record.value.summary && count < 12) {
      await ask(`Question ${count}`);
      count += 1;
      await answered(count);
    }
    const summary = chatOf(session).thread.value.record.value.summary;
    expect(summary?.conversation).toBe(fakeOptions.answer);
    fireEvent.click(screen.getByRole('button', { name: /^Context:/ }));
    const box = await screen.findByRole('textbox', { name: 'About you' });
    fireEvent.change(box, { target: { value: 'Likes lighthouses.' } });
    await ask('Last');
    await answered(count + 1);
    expect(contents(fakeRequests.length - 1).join()).toContain('Likes lighthouses.');
  }, 20_000);
});

describe('languages', () => {
  it('change everything at once, code blocks and answers included', async () => {
    fakeOptions.answer = '```\nx\n```';
    open(`?model=${MODEL}`);
    await ask('Hi');
    await answered();
    expect(within(log()).getByText('Copy')).toBeTruthy();
    setLang('zh');
    await waitFor(() => expect(within(log()).getByText('复制')).toBeTruthy());
    expect(within(log()).getByText('42.7 token/秒')).toBeTruthy();
    expect(screen.getByRole('textbox', { name: '消息' })).toBeTruthy();
    expect(() => message()).toThrow();
  });
});
