/**
 * The tabs' end of the shared worker: what it is there for.
 */

import { PagewiseError } from './errors.js';

/** What a shared worker is to the tabs: `engine`: speak the protocol to it. `broker`: one of the tabs has the engine. */
export type HostRole = 'engine' | 'broker';

/** A shared worker's first message to every tab. */
export interface RoleMessage {
  type: 'role';
  role: HostRole;
}

/** A shared worker, and what it said. */
export interface HostPort {
  port: MessagePort;
  role: HostRole;
}

/** The lock that a shared worker with an engine holds for as long as it lives. */
export function hostLock(group: string): string {
  return `${group}-host`;
}

/** One that says nothing for so long is none of ours. */
const SILENT_MS = 30_000;

/** Connects to the shared worker of that name; undefined where there can be none. */
export async function openHost(
  create: ((name: string) => SharedWorker) | undefined,
  name: string,
): Promise<HostPort | undefined> {
  let worker: SharedWorker | undefined;
  try {
    worker = create?.(name);
  } catch {
    return undefined;
  }
  if (worker === undefined) return undefined;
  if (typeof worker?.port?.postMessage !== 'function') {
    throw new PagewiseError('bad_request', 'share.createSharedWorker: it has to return a SharedWorker');
  }
  const { port } = worker;
  const role = await new Promise<HostRole | undefined>((resolve) => {
    const timer = setTimeout(() => resolve(undefined), SILENT_MS);
    const end = (found: HostRole | undefined): void => {
      clearTimeout(timer);
      resolve(found);
    };
    worker.onerror = () => end(undefined);
    port.onmessage = ({ data }: MessageEvent<RoleMessage>) => {
      if (data?.type === 'role') end(data.role);
    };
  });
  port.onmessage = null;
  if (role !== undefined) return { port, role };
  port.close();
  return undefined;
}
