/** What is stored, and erasing it. */
export const privacy = {
  title: 'Privacy and storage',
  lead: 'The model computes in this page, on your own GPU. What you write, what it answers and the files you attach or add as documents are never sent anywhere: there is no server, no account, no statistics.',
  network:
    'The network is used to fetch this page itself, and a model when you load it, from the address that is shown. After that everything works offline.',
  stored: 'Kept in this browser, on this device',
  chats: 'Conversations and prompts',
  chatsPlace: { one: '{count} conversation, in IndexedDB', other: '{count} conversations, in IndexedDB' },
  documents: 'Passages of your documents',
  documentsPlace: {
    one: '{count} document, in IndexedDB; the file itself is not kept',
    other: '{count} documents, in IndexedDB; the files themselves are not kept',
  },
  models: 'Models',
  modelsPlace: 'In the origin private file system (or IndexedDB)',
  deleteModel: 'Delete {name} from this device',
  page: 'The page itself, for use offline',
  pagePlace: 'In the cache storage, with what was measured of your GPU; kept by a service worker',
  settings: 'Settings, language and colours',
  settingsPlace: 'In the local storage',
  unknown: 'unknown',
  owner:
    'Whoever uses this browser profile can read it. Erasing it here removes it from this device; exported files stay. An exported conversation has the passages that its answers were given, not the documents.',
  erase: 'Erase everything',
  eraseSure: 'All conversations, prompts, documents, models and settings will be gone for good. Exported files stay.',
  eraseNow: 'Erase for good',
  erasedAll: 'Everything was erased. Close the page, or begin anew.',
  erasedSome: 'Some things are still in use by another tab. Close the other tabs and erase again. Still there:',
  begin: 'Begin anew',
} as const;
