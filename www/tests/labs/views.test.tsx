/** The labs as visitors use them, on the fake engine. */
import { fireEvent, render, screen, waitFor, within } from '@testing-library/preact';
import type { ComponentType } from 'preact';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lang } from '../../src/i18n';
import BatchingLab from '../../src/labs/batching/view';
import CacheLab from '../../src/labs/cache/view';
import DoctorLab from '../../src/labs/doctor/view';
import { FloorLab as FloorState } from '../../src/labs/floor/lab';
import FloorLab from '../../src/labs/floor/view';
import MemoryLab from '../../src/labs/memory/view';
import { navigate } from '../../src/shell/router';
import { Session } from '../../src/state/session';
import { SessionContext } from '../../src/ui/context';
import { Engine, fakeLoads } from '../fake-engine';
import { prepare } from '../open-page';

beforeEach(prepare);
afterEach(() => {
  lang.value = 'en';
  fakeLoads.length = 0;
});

function show(name: string, View: ComponentType, search = ''): Session {
  navigate(`#/labs/${name}`, { replace: true });
  const session = new Session(search);
  render(
    <SessionContext.Provider value={session}>
      <View />
    </SessionContext.Provider>,
  );
  return session;
}

const withModel = '?model=smollm2-135m-instruct&context_length=1024';

describe('the cache lab', () => {
  it('loads nothing before the visitor asks for it', async () => {
    show('cache', CacheLab);
    fireEvent.click(await screen.findByRole('button', { name: 'Load the model' }));
    await screen.findByRole('button', { name: 'Three branches' });
    expect(fakeLoads).toHaveLength(1);
  });

  it('says what to expect, measures it and shows the trie', async () => {
    show('cache', CacheLab, withModel);
    fireEvent.click(await screen.findByRole('button', { name: 'Three branches' }));
    const panel = await screen.findByRole('region', { name: 'Three branches' });
    await waitFor(() => expect(within(panel).getAllByText(/as expected/)).toHaveLength(3));
    const rows = within(panel).getAllByRole('row').slice(1, 4);
    expect(rows.map((row) => row.dataset.measured)).toEqual(rows.map((row) => row.dataset.expected));
    expect(Number(rows[2]?.dataset.measured)).toBeGreaterThan(16);
    const trie = await screen.findByRole('region', { name: 'Trie of prefixes' });
    await waitFor(() => expect(within(trie).getByText('A B C')).toBeTruthy());
    await waitFor(() => expect(within(trie).getAllByRole('listitem')).toHaveLength(4));
    expect(screen.getByRole('img', { name: /^Block pool: \d+ free, 0 in use/ })).toBeTruthy();
  });

  it('takes a prompt out of the GPU and brings it back', async () => {
    show('cache', CacheLab, withModel);
    fireEvent.click(await screen.findByRole('button', { name: 'Same system prompt twice' }));
    const press = async (name: string): Promise<void> => {
      const button = await screen.findByText(name);
      await waitFor(() => expect(button.closest('button')?.disabled).toBe(false));
      fireEvent.click(button);
    };
    await press('Take prompt A out');
    expect(await screen.findByLabelText(/blocks outside of the GPU/)).toBeTruthy();
    await press('Empty the cache');
    const cached = (): string | null => screen.getByLabelText(/^Block pool:/).getAttribute('aria-label');
    await waitFor(() => expect(cached()).toMatch(/ 0 cached/));
    await press('Bring it back');
    await waitFor(() => expect(cached()).not.toMatch(/ 0 cached/));
  });

  it('loads again with another pool, and goes back when it is left', async () => {
    const session = show('cache', CacheLab, withModel);
    fireEvent.click(await screen.findByRole('button', { name: 'Timestamp first' }));
    await waitFor(() => expect(screen.getAllByText(/as expected/)).toHaveLength(2));
    const size = screen.getByRole('slider', { name: 'Size of the block pool' });
    fireEvent.input(size, { target: { value: '32' } });
    fireEvent.click(screen.getByRole('radio', { name: 'f32' }));
    fireEvent.click(screen.getByRole('button', { name: 'Load again with these' }));
    await waitFor(() => expect(session.engine.value?.info.contextLength).toBe(512));
    expect(fakeLoads.at(-1)?.options).toMatchObject({ contextLength: 512, kv: 'f32' });
    // The same prompts in the smaller pool, run again.
    const panel = await screen.findByRole('region', { name: 'Timestamp first' });
    within(panel).getByText(/take \d+ blocks, and the pool has 32/);
    await session.restore();
    expect(session.engine.value?.info.contextLength).toBe(1024);
    await session.restore();
    expect(fakeLoads).toHaveLength(3);
  });

  it('speaks Chinese', async () => {
    lang.value = 'zh';
    show('cache', CacheLab, withModel);
    fireEvent.click(await screen.findByRole('button', { name: '时间戳放在最前' }));
    const panel = await screen.findByRole('region', { name: '时间戳放在最前' });
    await waitFor(() => expect(within(panel).getAllByText(/符合预期/)).toHaveLength(2));
  });
});

describe('the batching lab', () => {
  it('simulates all ways, and again when a slider moves', async () => {
    show('batching', BatchingLab);
    const table = await waitFor(() => {
      const found = document.querySelector<HTMLElement>('.batching-table');
      if (!found) throw new Error('not yet');
      return found;
    });
    expect(within(table).getAllByRole('row')).toHaveLength(4);
    const before = table.textContent;
    fireEvent.input(screen.getByRole('slider', { name: 'Slots' }), { target: { value: '4' } });
    await waitFor(() => expect(document.querySelector('.batching-table')?.textContent).not.toBe(before));
  });

  it('does not show a simulated server for this device', async () => {
    show('batching', BatchingLab);
    await waitFor(() => expect(document.querySelector('.batching-table')?.textContent).toContain('P50 / P95 / P99'));
    fireEvent.click(screen.getByRole('radio', { name: 'This device' }));
    await screen.findByText(/Nothing was measured on this device yet/);
    expect(document.querySelector('.batching-table')).toBeNull();
    fireEvent.click(screen.getByRole('radio', { name: /^Laptop/ }));
    await waitFor(() => expect(document.querySelector('.batching-table')).not.toBeNull());
    expect(screen.queryByText(/Nothing was measured/)).toBeNull();
  });
});

describe('the latency-floor lab', () => {
  it('counts its steps', async () => {
    const lab = new FloorState(() => Promise.resolve(1e9));
    const seen: string[] = [];
    const stop = lab.step.subscribe(({ at, of }) => seen.push(`${at}/${of}`));
    await lab.run((await Engine.load('smollm2-135m-instruct', { contextLength: 512 })) as never);
    stop();
    expect(lab.job.problem.value).toBeNull();
    // Memory, two contexts, two batches, streaming.
    expect(seen).toEqual(['0/0', '0/6', '1/6', '2/6', '3/6', '4/6', '5/6', '6/6']);
  });

  it('shows what a token reads before anything is measured', async () => {
    show('floor', FloorLab, withModel);
    const panel = await screen.findByRole('region', { name: 'One token' });
    expect(panel.textContent).toContain('94.0 MB');
    expect(screen.getByRole('button', { name: 'Measure with KV in f16' })).toBeTruthy();
  });
});

describe('the memory lab', () => {
  it('follows the model and the sharing', async () => {
    show('memory', MemoryLab);
    const panel = await screen.findByRole('region', { name: 'What it takes' });
    expect(panel.textContent).toContain('131 kB');
    fireEvent.change(screen.getByRole('combobox', { name: 'Model' }), { target: { value: 'llama2-13b' } });
    await waitFor(() => expect(panel.textContent).toContain('819 kB'));
    expect(panel.textContent).not.toContain('less by sharing');
    fireEvent.click(screen.getByRole('switch', { name: 'Share a common prefix' }));
    await waitFor(() => expect(panel.textContent).toContain('less by sharing'));
  });
});

describe('the prompt doctor', () => {
  it('needs no model, and shows tokens with one', async () => {
    show('doctor', DoctorLab, withModel);
    expect(await screen.findByRole('region', { name: 'A time or date changes' })).toBeTruthy();
    expect(await screen.findByRole('region', { name: 'As the model gets them' })).toBeTruthy();
  });

  it('examines a log', async () => {
    show('doctor', DoctorLab);
    fireEvent.click(await screen.findByRole('radio', { name: 'A log of requests' }));
    const panel = await screen.findByRole('region', { name: 'What costs most' });
    expect(within(panel).getAllByRole('listitem').length).toBeGreaterThan(0);
  });
});
