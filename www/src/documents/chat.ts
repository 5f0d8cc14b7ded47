/** What the chat asks of documents: passages for a question, and a place for files that are no attachments. */
import type { Chat } from '../chat/chat';
import type { Message, Thread } from '../chat/thread';
import { change, toRecord } from '../chat/thread';
import { pathTo, toMessages } from '../chat/tree';
import type { LoadedModel } from '../state/engine';
import type { Session } from '../state/session';
import { documentsOf, sizingOf } from './context';
import { promptTokens, retrieve, roomFor } from './retrieve';
import { DEFAULT_DOCUMENTS } from './source';

/**
 * Finds the passages for the question above `answer`, once: a regenerated answer has the same. An empty list says that
 * nothing was found or nothing fits.
 */
export async function findSources(
  session: Session,
  thread: Thread,
  answer: Message,
  model: LoadedModel,
  signal: AbortSignal,
): Promise<Message | null> {
  const nodes = thread.nodes.peek();
  const path = pathTo(nodes, answer.parent);
  const question = path.at(-1);
  const { documents = DEFAULT_DOCUMENTS, system, budget } = thread.record.peek();
  if (!question || !documents.isOn || question.state.peek().sources) return null;
  const messages = toMessages(path.map(toRecord), system);
  const used = await promptTokens(model, messages);
  const searching = retrieve({
    search: (text, limit) => documentsOf(session).search(text, limit),
    question: question.state.peek().text,
    earlier: path
      .slice(0, -1)
      .filter(({ role }) => role === 'user')
      .map(({ state }) => ({ text: state.peek().text, sources: state.peek().sources ?? [] })),
    keepsTurns: budget.overflow === 'error',
    numPassages: documents.numPassages,
    room: roomFor(used, model.info.contextLength, session.settings.peek().maxTokens),
    count: async (text) => (await model.engine.tokenize(text)).length,
  });
  // Making the index may take a while; who stops does not wait for it.
  const sources = await orAborted(searching, signal);
  change(question, { sources });
  return question;
}

function orAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    work.then(resolve, reject);
  });
}

/** Takes files into the library and lets the open conversation use it; shows how it goes. */
export async function addDocuments(chat: Chat, files: readonly File[]): Promise<void> {
  chat.dialog.value = 'documents';
  const thread = chat.thread.peek();
  const added = await documentsOf(chat.session).add(files, () => sizingOf(chat.session));
  // Whoever has gone on to another conversation did not add them to that one.
  if (added.length === 0 || chat.thread.peek() !== thread) return;
  chat.setDocuments({ ...(thread.record.peek().documents ?? DEFAULT_DOCUMENTS), isOn: true });
}
