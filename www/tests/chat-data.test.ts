/** Conversations as data: the tree, files, the store, attachments. No screen. */
import { afterEach, describe, expect, it } from 'vitest';
import { MAX_FILE_BYTES, readAttachment, withAttachments } from '../src/chat/attachments';
import { fileNameFor, toJson, toMarkdown } from '../src/chat/export';
import { fromFile } from '../src/chat/import';
import { type MessageRecord, NO_SYSTEM, newConversation, titleFrom } from '../src/chat/records';
import { ChatStore, DATABASE, type WholeConversation } from '../src/chat/store';
import { childrenOf, newestLeaf, pathTo, toMessages, treeRows } from '../src/chat/tree';
import { formatDateTime, formatWhen, isoTime } from '../src/i18n/format';

let created = 1000;

function message(id: string, parent: string | null, role: 'user' | 'assistant', text = id): MessageRecord {
  created += 1;
  const fixed = { attachments: [], status: 'done' as const, stats: null, problem: null };
  return { id, conversation: 'c', parent, role, created, text, ...fixed };
}

/** Q1 A1 (Q2 A2 | Q2b A2b), and a second answer to Q1. */
const branched = [
  message('q1', null, 'user'),
  message('a1', 'q1', 'assistant'),
  message('q2', 'a1', 'user'),
  message('a2', 'q2', 'assistant'),
  message('q2b', 'a1', 'user'),
  message('a2b', 'q2b', 'assistant'),
  message('a1b', 'q1', 'assistant'),
];
const nodes = new Map(branched.map((one) => [one.id, one]));
const names = { user: 'You', assistant: 'Answer', system: 'System prompt' };

function whole(messages: readonly MessageRecord[], leaf: string, title = 'A title'): WholeConversation {
  const conversation = {
    ...newConversation({ text: 'Be brief.', name: 'support', version: 3 }, 5),
    id: 'c',
    title,
    leaf,
  };
  return { conversation, messages };
}

describe('the tree', () => {
  it('has a path to every message', () => {
    expect(pathTo(nodes, 'a2').map(({ id }) => id)).toEqual(['q1', 'a1', 'q2', 'a2']);
    expect(pathTo(nodes, null)).toEqual([]);
  });

  it('ends a path at a circle or a missing parent', () => {
    const broken = new Map([
      ['x', message('x', 'y', 'user')],
      ['y', message('y', 'x', 'user')],
      ['z', message('z', 'gone', 'user')],
    ]);
    expect(pathTo(broken, 'x').map(({ id }) => id)).toEqual(['y', 'x']);
    expect(pathTo(broken, 'z').map(({ id }) => id)).toEqual(['z']);
    expect(newestLeaf(broken, 'x')).toBe('y');
  });

  it('keeps branches in the order they were made', () => {
    const children = childrenOf(nodes);
    expect(children.get('a1')?.map(({ id }) => id)).toEqual(['q2', 'q2b']);
    expect(children.get('q1')?.map(({ id }) => id)).toEqual(['a1', 'a1b']);
    expect(newestLeaf(nodes, 'a1')).toBe('a2b');
  });

  it('is drawn with a step for each fork', () => {
    const rows = treeRows(nodes).map(({ node, depth, isFork }) => `${'-'.repeat(depth)}${node.id}${isFork ? '*' : ''}`);
    expect(rows).toEqual(['q1*', '-a1*', '--q2', '--a2', '--q2b', '--a2b', '-a1b']);
  });

  it('survives ten thousand messages in a row', () => {
    const long = Array.from({ length: 10_000 }, (_, at) => message(`m${at}`, at === 0 ? null : `m${at - 1}`, 'user'));
    const deep = new Map(long.map((one) => [one.id, one]));
    expect(pathTo(deep, 'm9999')).toHaveLength(10_000);
    expect(treeRows(deep)).toHaveLength(10_000);
  });
});

describe('what a branch sends', () => {
  it('is the system prompt, then questions and answers in turn, as far as they were answered', () => {
    const path = [
      message('1', null, 'user'),
      message('2', '1', 'assistant'),
      message('3', '2', 'user', 'unanswered'),
      message('4', '3', 'assistant', ''),
      message('5', '4', 'user'),
    ];
    expect(toMessages(path, { ...NO_SYSTEM, text: 'Be brief.' })).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: '1' },
      { role: 'assistant', content: '2' },
      { role: 'user', content: '5' },
    ]);
    expect(toMessages(path.slice(0, 1), { ...NO_SYSTEM, text: ' \n' })).toHaveLength(1);
  });

  it('begins with the same messages in every branch', () => {
    const [one, other] = ['a2', 'a2b'].map((leaf) => toMessages(pathTo(nodes, leaf), NO_SYSTEM));
    expect(one?.slice(0, 2)).toEqual(other?.slice(0, 2));
  });

  it('has attached files in front of the question, fenced so that they cannot end early', () => {
    const file = { name: 'notes.md', text: 'a\n````js\nb\n````\n', bytes: 17 };
    expect(withAttachments('What is this?', [file])).toBe('`````notes.md\na\n````js\nb\n````\n`````\n\nWhat is this?');
    expect(withAttachments('Only words', [])).toBe('Only words');
  });
});

describe('attachments', () => {
  it('are text, whatever they are called', async () => {
    expect(await readAttachment(new File(['héllo\r\nworld'], 'x.bin'))).toEqual({
      name: 'x.bin',
      text: 'héllo\nworld',
      bytes: 13,
    });
  });

  it.each([
    ['too_large', new File(['x'.repeat(MAX_FILE_BYTES + 1)], 'big.txt')],
    ['not_text', new File([new Uint8Array([0x50, 0x4b, 0, 4])], 'a.txt')],
    ['not_text', new File([new Uint8Array([0xff, 0xfe, 0x41])], 'latin.txt')],
  ])('are refused as %s', async (why, file) => {
    expect(await readAttachment(file)).toBe(why);
  });
});

describe('export and import', () => {
  it('bring back everything from JSON, under new ids', () => {
    const before = whole(branched, 'a2');
    const prompts = [{ name: 'support', versions: [{ version: 3, text: 'Be brief.', created: 9 }] }];
    const {
      conversations,
      prompts: readPrompts,
      problems,
    } = fromFile('x.json', toJson([before], prompts, new Date(0)));
    expect(problems).toEqual([]);
    expect(readPrompts).toEqual(prompts);
    const [after] = conversations;
    expect(after?.conversation).toMatchObject({ title: 'A title', system: before.conversation.system, created: 5 });
    expect(after?.conversation.id).not.toBe('c');
    const read = new Map(after?.messages.map((one) => [one.id, one]));
    expect(pathTo(read, after?.conversation.leaf ?? null).map(({ text }) => text)).toEqual(['q1', 'a1', 'q2', 'a2']);
    expect(treeRows(read).map(({ node, depth }) => [node.text, depth])).toEqual(
      treeRows(nodes).map(({ node, depth }) => [node.text, depth]),
    );
  });

  it('bring back the shown branch from Markdown, also of messages that look like it', () => {
    const tricky = 'A line\n<!-- pagewise:user -->\n## You\n\\<!-- pagewise:user -->\nend';
    const messages = [message('q', null, 'user', tricky), message('a', 'q', 'assistant', '# Title?\n\n- x')];
    const text = toMarkdown(whole(messages, 'a'), names);
    expect(text).toContain('# A title\n');
    expect(text).toContain('## You');
    const { conversations, problems } = fromFile('x.md', text);
    expect(problems).toEqual([]);
    expect(conversations[0]?.conversation).toMatchObject({ title: 'A title', system: { text: 'Be brief.' } });
    expect(conversations[0]?.messages.map(({ role, text: body }) => [role, body])).toEqual([
      ['user', tricky],
      ['assistant', '# Title?\n\n- x'],
    ]);
  });

  it.each([
    ['{"format": "pagewise-chats", "ver', 'not_json'],
    ['[1, 2]', 'not_ours'],
    ['{"format": "other"}', 'not_ours'],
    ['{"format": "pagewise-chats", "version": 99}', 'other_version'],
    ['# Some notes\n\nno marks', 'no_marks'],
  ])('report a file that is none of ours: %s', (contents, code) => {
    expect(fromFile('f', contents)).toEqual({ conversations: [], prompts: [], problems: [{ code, place: 'f' }] });
  });

  it('leave out what is not sound, keep the rest, and say where', () => {
    const file = {
      format: 'pagewise-chats',
      version: 1,
      conversations: [
        null,
        { title: 'none', messages: [] },
        {
          title: 7,
          leaf: 'nowhere',
          system: { text: 5 },
          budget: { overflow: 'explode', keepTurns: -1, cutTo: 'x' },
          messages: [
            { id: 'a', role: 'user', text: 'kept', parent: 'missing' },
            { id: 'a', role: 'user', text: 'same id' },
            { id: 'b', role: 'robot', text: 'who?' },
            {
              id: 'c',
              role: 'assistant',
              text: '<img src=x onerror=alert(1)>',
              parent: 'a',
              stats: { promptTokens: 'x' },
            },
            { id: 'd', role: 'user', text: 'circle', parent: 'd' },
          ],
        },
      ],
      prompts: [{ name: 'p', versions: [{ version: 'one', text: '' }] }],
    };
    const { conversations, prompts, problems } = fromFile('f', JSON.stringify(file));
    expect(problems.map(({ code, place }) => `${code} ${place}`)).toEqual([
      'not_a_conversation f: conversations[0]',
      'no_messages f: conversations[1]',
      'not_a_message f: conversations[2].messages[1]',
      'not_a_message f: conversations[2].messages[2]',
      'lost_parent f: conversations[2]: a',
      'not_a_prompt f: prompts[0]',
    ]);
    expect(prompts).toEqual([]);
    const [only] = conversations;
    expect(conversations).toHaveLength(1);
    expect(only?.messages.map(({ text, parent }) => [text, parent === null])).toEqual([
      ['kept', true],
      ['<img src=x onerror=alert(1)>', false],
      ['circle', true],
    ]);
    expect(only?.conversation).toMatchObject({ title: 'kept', system: { text: '' }, budget: { overflow: 'error' } });
  });

  it('takes no time that is no date, which would keep the list from being shown ever after', () => {
    const read = (time: unknown) => {
      const messages = [{ id: 'a', role: 'user', text: 'x', created: time }];
      const conversations = [{ created: time, updated: time, messages }];
      const prompts = [{ name: 'p', versions: [{ version: 1, text: 'x', created: time }] }];
      const contents = JSON.stringify({ format: 'pagewise-chats', version: 1, conversations, prompts });
      return fromFile('f', contents, 5000);
    };
    for (const time of [1e300, 8.64e15, -1, 0, 'now', null]) {
      const { conversations, prompts } = read(time);
      expect(conversations[0]?.conversation).toMatchObject({ created: 5000, updated: 5000 });
      expect(conversations[0]?.messages[0]?.created).toBe(5000);
      expect(prompts[0]?.versions[0]?.created).toBe(5000);
    }
    expect(read(4000).conversations[0]?.conversation).toMatchObject({ created: 4000, updated: 4000 });
    for (const time of [1e300, Number.NaN]) {
      expect([isoTime(time), formatWhen(time), formatDateTime(time)].every((text) => text !== '')).toBe(true);
    }
  });

  it('looks at each message of a long conversation once, in whichever order, and cuts a circle at one place', () => {
    const num = 20_000;
    const chain = Array.from({ length: num }, (_, at) => ({
      id: `${at}`,
      role: 'user',
      text: '',
      parent: `${at + 1}`,
    }));
    const read = (last: string | null) => {
      const messages = chain.map((one, at) => (at === num - 1 ? { ...one, parent: last } : one));
      const file = { format: 'pagewise-chats', version: 1, conversations: [{ messages }] };
      const [only] = fromFile('f', JSON.stringify(file)).conversations;
      return only?.messages.filter(({ parent }) => parent === null).length;
    };
    expect(read(null)).toBe(1);
    expect(read(`${num - 5}`)).toBe(1);
  });

  it('name files after titles in any language', () => {
    expect(fileNameFor('How? a/b: "c"', 'md')).toBe('How-a-b-c.md');
    expect(fileNameFor('彩虹是怎样形成的？', 'json')).toBe('彩虹是怎样形成的.json');
    expect(fileNameFor('…', 'md')).toBe('conversation.md');
  });

  it('take titles from the first line, cut at a word', () => {
    expect(titleFrom('\n Hello  there\nmore')).toBe('Hello there');
    expect(titleFrom('word '.repeat(30))).toBe(`${'word '.repeat(12).trim()}…`);
  });
});

describe('the store', () => {
  const stores: ChatStore[] = [];
  const open = async (): Promise<ChatStore> => {
    const store = await ChatStore.open();
    stores.push(store);
    return store;
  };

  afterEach(async () => {
    for (const store of stores.splice(0)) store.close();
    await new Promise((resolve) => {
      indexedDB.deleteDatabase(DATABASE).onsuccess = resolve;
    });
  });

  it('loses no write when two tabs change the same conversation at once', async () => {
    const [one, other] = [await open(), await open()];
    await one.add(whole(branched.slice(0, 2), 'a1'));
    const extra = Array.from({ length: 20 }, (_, at) => message(`n${at}`, 'a1', 'user'));
    await Promise.all([
      one.update('c', { title: 'Renamed', isTitled: true }),
      other.update('c', { budget: { overflow: 'drop_oldest_turns', keepTurns: 3, cutTo: 0.5 } }),
      ...extra.map((each, at) => (at % 2 ? one : other).write('c', [each], { updated: 100 + at })),
    ]);
    const after = await one.get('c');
    expect(after?.conversation).toMatchObject({ title: 'Renamed', budget: { keepTurns: 3 } });
    expect(after?.messages).toHaveLength(22);
  });

  it('keeps prompt versions apart when two tabs save at once', async () => {
    const [one, other] = [await open(), await open()];
    await Promise.all([one.addPromptVersion('support', 'a'), other.addPromptVersion('support', 'b')]);
    expect(await one.addPromptVersion('support', 'b')).toMatchObject({ version: 2 });
    const [prompt] = await other.prompts();
    expect(prompt?.versions.map(({ version, text }) => `${version}${text}`)).toEqual(['1a', '2b']);
  });

  it('brings back what was deleted, and writes nothing to what is gone', async () => {
    const store = await open();
    await store.add(whole(branched, 'a2'));
    const deleted = await store.delete('c');
    expect(await store.write('c', [message('late', 'a2', 'user')])).toBe(false);
    expect(await store.get('c')).toBeNull();
    if (deleted) await store.add(deleted);
    expect((await store.get('c'))?.messages).toHaveLength(branched.length);
  });

  it('finds words in titles, messages and file names, whatever their case or width', async () => {
    const store = await open();
    const question = {
      ...message('q', null, 'user', 'Where is ＴＯＫＹＯ?\n彩虹'),
      attachments: [{ name: 'Plan.md', text: '', bytes: 0 }],
    };
    await store.add(whole([question], 'q', 'Cities'));
    const find = async (text: string) => [...(await store.search(text, new AbortController().signal)).values()];
    expect((await find('tokyo'))[0]).toMatchObject({ conversation: 'c', before: 'Where is ' });
    expect(await find('彩虹')).toHaveLength(1);
    expect(await find('CITIES')).toHaveLength(1);
    expect(await find('plan')).toHaveLength(1);
    expect(await find('nothing')).toHaveLength(0);
    expect(await find('  ')).toHaveLength(0);
  });
});
