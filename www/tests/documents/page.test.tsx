/** Documents as visitors use them, in the chat and in the lab, on the fake engine. */
import { fireEvent, render, screen, waitFor, within } from '@testing-library/preact';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chatOf } from '../../src/chat/context';
import { toJson } from '../../src/chat/export';
import { fromFile } from '../../src/chat/import';
import { documentsOf } from '../../src/documents/context';
import { DOCUMENTS_DATABASE } from '../../src/documents/store';
import { lang } from '../../src/i18n';
import { sampleFor } from '../../src/labs/documents/sample';
import DocumentsLab from '../../src/labs/documents/view';
import { navigate } from '../../src/shell/router';
import { Session } from '../../src/state/session';
import { SessionContext } from '../../src/ui/context';
import { fakeOptions, fakeRequests } from '../fake-engine';
import { answered, ask, closePage, log, MODEL, open, prepare } from '../open-page';
import '../../src/documents/documents-dialog';
import '../../src/documents/source-dialog';

let session: Session;

beforeEach(prepare);
afterEach(async () => {
  documentsOf(session).close();
  await closePage();
  await new Promise((resolve) => {
    indexedDB.deleteDatabase(DOCUMENTS_DATABASE).onsuccess = resolve;
  });
});

const handbook = (): File => new File([sampleFor('en').text], 'shop-handbook.md');
const lastPrompt = (): { role: string; content: unknown }[] => [...(fakeRequests.at(-1)?.messages ?? [])] as never;

async function openWithHandbook(): Promise<void> {
  session = open(`?model=${MODEL}`);
  await screen.findByRole('button', { name: 'Documents' });
  await waitFor(() => expect(session.engine.value).not.toBeNull());
  fireEvent.click(screen.getByRole('button', { name: 'Documents' }));
  fireEvent.change(await screen.findByLabelText('Add files', { selector: 'input' }), {
    target: { files: [handbook()] },
  });
  await screen.findByText(/9 passages/);
  // Whoever adds files wants them used.
  await waitFor(() => expect(screen.getByRole('switch').getAttribute('aria-checked')).toBe('true'));
  fireEvent.click(screen.getByRole('button', { name: 'Close' }));
}

describe('a conversation with documents', () => {
  it('sends passages behind what stays, keeps them, and cites them', async () => {
    await openWithHandbook();
    fakeOptions.answer = 'The workshop does [1]. Not [9].';
    await ask('Who repairs a bicycle under warranty?');
    await answered(1);
    const [question] = lastPrompt();
    expect(question?.content).toMatch(/^Passages from documents[\s\S]*\[1\] Repairs \(shop-handbook\.md, Handbook/);
    expect(question?.content).toMatch(/\n\nWho repairs a bicycle under warranty\?$/);
    expect(String(question?.content).match(/^\[\d+\] /gm)?.length).toBeLessThanOrEqual(4);

    fakeOptions.answer = 'It costs 24 euros.';
    await ask('What does a parcel to Norway cost?');
    await answered(2);
    // The first turn is as it was, so that all of it is reused.
    expect(lastPrompt().slice(0, 2)).toEqual([
      question,
      { role: 'assistant', content: 'The workshop does [1]. Not [9].' },
    ]);
    const numbers = [...String(lastPrompt()[2]?.content).matchAll(/^\[(\d+)\] /gm)].map(([, number]) => Number(number));
    const before = [...String(question?.content).matchAll(/^\[(\d+)\] /gm)].length;
    expect(numbers).toEqual(numbers.map((_, index) => before + index + 1));

    // The citation is a button; the number that nobody gave out is text.
    const cite = within(log()).getByRole('button', { name: /^Source 1: Repairs, shop-handbook.md/ });
    expect(cite.classList.contains('cite')).toBe(true);
    expect(log().textContent).toContain('Not [9].');
    const [list] = within(log()).getAllByRole('region', { name: 'Sources' });
    const rows = within(list as HTMLElement).getAllByRole('button');
    expect(rows[0]?.textContent).toMatch(/^1Repairs.*cited$/);
    expect(rows.slice(1).every((row) => row.textContent?.endsWith('not cited'))).toBe(true);
    fireEvent.click(cite);
    const dialog = await screen.findByRole('dialog', { name: '[1] Repairs' });
    expect(dialog.textContent).toContain('the workshop at pier 4');
  });

  it('asks with the same passages again, and other ones after an edit', async () => {
    await openWithHandbook();
    await ask('Who repairs a bicycle under warranty?');
    await answered(1);
    const first = lastPrompt();
    // A document that is gone stays with the conversations that used it.
    const [document] = documentsOf(session).list.value ?? [];
    await documentsOf(session).delete(document?.id ?? '');
    fireEvent.click(screen.getByRole('button', { name: 'Regenerate' }));
    await waitFor(() => expect(fakeRequests).toHaveLength(2));
    await answered(1);
    expect(lastPrompt()).toEqual(first);
    // And is exported and imported with them.
    const whole = await chatOf(session).library.get(chatOf(session).thread.value.id);
    if (!whole) throw new Error('not stored');
    const [back] = fromFile('x.json', toJson([whole], [], new Date())).conversations;
    const sources = whole.messages.find(({ role }) => role === 'user')?.sources;
    expect(sources?.length).toBeGreaterThan(0);
    expect(back?.messages.find(({ role }) => role === 'user')?.sources).toEqual(sources);
    expect(back?.conversation.documents).toEqual({ isOn: true, numPassages: 4 });
  });

  it('says when nothing fits, and asks without', async () => {
    await openWithHandbook();
    await ask('Zeppelin?');
    await answered(1);
    expect(lastPrompt()).toEqual([{ role: 'user', content: 'Zeppelin?' }]);
    expect(screen.getByText('Nothing in your documents fits this question.')).toBeTruthy();
  });

  it('is as ever where they are switched off', async () => {
    await openWithHandbook();
    chatOf(session).setDocuments({ isOn: false, numPassages: 4 });
    await ask('Who repairs a bicycle under warranty?');
    await answered(1);
    expect(lastPrompt()).toEqual([{ role: 'user', content: 'Who repairs a bicycle under warranty?' }]);
    expect(screen.queryByRole('region', { name: 'Sources' })).toBeNull();
  });
});

describe('the documents lab', () => {
  function show(search = ''): void {
    navigate('#/labs/documents', { replace: true });
    session = new Session(search);
    render(
      <SessionContext.Provider value={session}>
        <DocumentsLab />
      </SessionContext.Provider>,
    );
  }

  it.each(['en', 'zh'] as const)('finds the answers of its sample, in %s', async (language) => {
    lang.value = language;
    show();
    fireEvent.click(await screen.findByRole('button', { name: /sample handbook|示例手册/ }));
    await screen.findByText(/9 passages|9 个段落/);
    const answers = language === 'en' ? [/14 days/, /24 euros/, /pier 4/] : [/14 天/, /24 欧元/, /4 号码头/];
    for (const [index, question] of sampleFor(language).questions.entries()) {
      fireEvent.input(screen.getByRole('searchbox'), { target: { value: question } });
      const answer = answers[index] as RegExp;
      await waitFor(() => expect(document.querySelector('.hit')?.textContent).toMatch(answer));
      expect(document.querySelectorAll('.hit').length).toBeLessThanOrEqual(8);
    }
    fireEvent.click(document.querySelector('.hit') as HTMLElement);
    expect((await screen.findByRole('dialog')).textContent).toMatch(answers[2] as RegExp);
  });

  it('runs both orders and says which one the cache can use', async () => {
    show(`?model=${MODEL}&context_length=2048`);
    const start = await screen.findByRole('button', { name: 'Passages first, or after the rules' });
    expect((start as HTMLButtonElement).disabled).toBe(true);
    fireEvent.click(screen.getByRole('button', { name: 'Add the sample handbook' }));
    await waitFor(() => expect((start as HTMLButtonElement).disabled).toBe(false));
    expect(screen.queryByRole('button', { name: 'Add the sample handbook' })).toBeNull();
    fireEvent.click(start);
    await waitFor(() => expect(document.querySelector('.orders')?.getAttribute('data-done')).toBe('true'));
    const rows = (order: string): HTMLElement[] => [
      ...document.querySelectorAll<HTMLElement>(`[data-order=${order}] tr[data-at]`),
    ];
    expect(rows('first').map(({ dataset }) => dataset.measured)).toEqual(
      rows('first').map(({ dataset }) => dataset.expected),
    );
    expect(screen.getAllByText(/as expected/)).toHaveLength(6);
    const later = (order: string): number[] =>
      rows(order)
        .slice(1)
        .map(({ dataset }) => Number(dataset.measured));
    expect(Math.min(...later('after'))).toBeGreaterThan(10 * Math.max(...later('first')));
    expect(document.querySelector('.order-after')?.textContent).toContain('What changes belongs behind');
  });

  it('asks about the documents that are there, and draws no conclusion from questions that find the same', async () => {
    show(`?model=${MODEL}&context_length=2048`);
    const start = await screen.findByRole('button', { name: 'Passages first, or after the rules' });
    const own = '# Boats\n\n## Hull\n\nPaint it in spring.\n\n## Mast\n\nOil the wood.\n\n## Is it safe?\n\nYes.\n';
    fireEvent.change(screen.getByLabelText('Add files', { selector: 'input' }), {
      target: { files: [new File([own], 'boats.md')] },
    });
    const questions = screen.getByRole('textbox', { name: 'Questions, one a line' }) as HTMLTextAreaElement;
    await waitFor(() =>
      expect(questions.value).toBe(
        'What does the text say about Hull?\nWhat does the text say about Mast?\nIs it safe?',
      ),
    );
    // Beside other documents the sample is still offered.
    screen.getByRole('button', { name: 'Add the sample handbook' });
    const run = async (text: string): Promise<string> => {
      fireEvent.input(questions, { target: { value: text } });
      await waitFor(() => expect((start as HTMLButtonElement).disabled).toBe(false));
      fireEvent.click(start);
      await waitFor(() => expect((start as HTMLButtonElement).disabled).toBe(true));
      await waitFor(() => expect(document.querySelector('.orders')?.getAttribute('data-done')).toBe('true'));
      await waitFor(() => expect((start as HTMLButtonElement).disabled).toBe(false));
      return document.querySelector('.run')?.textContent ?? '';
    };
    const same = await run('Hull paint?\nHull in spring?\nZebras?');
    expect(same).toMatch(/same passages are found for all.*Nothing in your documents fits “Zebras\?”/);
    expect(same).toContain('Nothing follows from this run');
    expect(same).not.toContain('What changes belongs behind');
    const few = await run('Hull?\nZebras?\nGiraffes?');
    expect(few).toMatch(/it takes two.*“Zebras\?” “Giraffes\?”/);
    expect(few).not.toContain('What changes belongs behind');
    expect(await run('Hull?\nMast?')).toContain('What changes belongs behind');
  });
});
