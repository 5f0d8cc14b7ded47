// A server of a model's file, and readers of it, which end with each test.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect } from 'vitest';
import type { SourceSpec } from '../src/protocol.js';
import { ModelReader } from '../src/reader.js';
import { NETWORK } from '../src/retry.js';

/** A file whose bytes are told apart, with a model's first four. */
export const FILE = Buffer.alloc(3 * 1024 * 1024 + 17);
for (let i = 0; i < FILE.length; i++) FILE[i] = (i * 31 + (i >> 8)) & 255;
FILE.write('GGUF', 0);

export type Handler = (request: IncomingMessage, response: ServerResponse, range: [number, number] | undefined) => void;

export const servers: Server[] = [];
export const readers: ModelReader[] = [];
export const waits: number[] = [];
export const environment = { ...NETWORK, sleep: async (ms: number) => void waits.push(ms), stallMs: 300 };

afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
  for (const server of servers.splice(0)) server.close().closeAllConnections();
  waits.length = 0;
});

export async function serve(handler: Handler): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    requests.push(request.method === 'GET' ? `${start}-${end}` : String(request.method));
    handler(request, response, start === undefined ? undefined : [Number(start), Number(end)]);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/model.gguf`, requests };
}

export const ranges =
  (file: Buffer = FILE, headers: Record<string, string> = {}): Handler =>
  (_request, response, range) => {
    if (range === undefined) return void response.writeHead(500).end();
    const [start, end] = [range[0], Math.min(range[1], file.length - 1)];
    if (start > end) return void response.writeHead(416).end();
    const body = file.subarray(start, end + 1);
    const contentRange = `bytes ${start}-${end}/${file.length}`;
    response.writeHead(206, { 'content-length': body.length, 'content-range': contentRange, ...headers }).end(body);
  };

export const whole: Handler = (_request, response) =>
  void response.writeHead(200, { 'content-length': FILE.length }).end(FILE);

export function open(urls: string | string[], spec: Partial<SourceSpec> = {}): ModelReader {
  const parts = [{ kind: 'url' as const, urls: [urls].flat() }];
  const reader = new ModelReader({ id: 'm', parts, headers: {}, ...spec }, environment);
  readers.push(reader);
  return reader;
}

export async function expectBytes(reader: ModelReader, offset: number, length: number): Promise<void> {
  const bytes = await reader.read(0, offset, length);
  expect(Buffer.compare(bytes, FILE.subarray(offset, offset + length))).toBe(0);
  expect(bytes.length).toBe(length);
}
