// A server of plain files on the loopback interface: folders mounted by prefix, byte ranges, a strict policy.
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { models, pageDist } from './paths.mjs';

const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};

/** Scripts, workers and styles come from here only; `https:` is for a model's URL that the visitor types. */
export const POLICY = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self' https: blob:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'content-security-policy': POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-cache',
  'accept-ranges': 'bytes',
};

/** The page and the models: what `npm start` serves. */
export const PAGE_MOUNTS = { '/models/': models, '/': pageDist };

/** The file that a URL names, or null. The first mount whose prefix fits decides, so list longer prefixes first. */
function resolveFile(mounts, pathname) {
  let name;
  try {
    name = decodeURIComponent(pathname);
  } catch {
    return null;
  }
  const prefix = Object.keys(mounts).find((candidate) => name.startsWith(candidate));
  if (prefix === undefined || name.includes('\0')) return null;
  const folder = path.resolve(mounts[prefix]);
  const file = path.resolve(folder, `./${name.slice(prefix.length)}`);
  if (file !== folder && !file.startsWith(folder + path.sep)) return null;
  const info = fs.statSync(file, { throwIfNoEntry: false });
  if (info?.isDirectory()) {
    const index = path.join(file, 'index.html');
    return fs.existsSync(index) ? index : null;
  }
  return info?.isFile() ? file : null;
}

/** `bytes=a-b`, `bytes=a-` and `bytes=-n` as [first, last]; null without a usable header, 'outside' when it cannot be met. */
export function parseRange(header, size) {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (!match || (match[1] === '' && match[2] === '')) return null;
  let first = Number(match[1]);
  let last = match[2] === '' ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[1] === '') {
    first = Math.max(size - Number(match[2]), 0);
    last = size - 1;
  }
  return first > last ? 'outside' : [first, last];
}

function refuse(response, status, text, headers = {}) {
  response.writeHead(status, { ...HEADERS, 'content-type': 'text/plain; charset=utf-8', ...headers });
  response.end(`${text}\n`);
}

function answer(mounts, more, request, response) {
  if (request.method !== 'GET' && request.method !== 'HEAD')
    return refuse(response, 405, 'only GET and HEAD', { allow: 'GET, HEAD' });
  const file = resolveFile(mounts, request.url.split(/[?#]/, 1)[0]);
  if (file === null) return refuse(response, 404, 'not found');

  const info = fs.statSync(file);
  const etag = `"${info.size.toString(16)}-${Math.round(info.mtimeMs).toString(16)}"`;
  const headers = {
    ...HEADERS,
    ...more,
    etag,
    'content-type': TYPES[path.extname(file)] ?? 'application/octet-stream',
  };
  if (request.headers['if-none-match'] === etag) {
    response.writeHead(304, headers);
    return response.end();
  }
  const ifRange = request.headers['if-range'];
  const range = ifRange === undefined || ifRange === etag ? parseRange(request.headers.range, info.size) : null;
  if (range === 'outside')
    return refuse(response, 416, 'outside the file', { 'content-range': `bytes */${info.size}` });
  const [first, last] = range ?? [0, info.size - 1];
  if (range) headers['content-range'] = `bytes ${first}-${last}/${info.size}`;
  response.writeHead(range ? 206 : 200, { ...headers, 'content-length': last - first + 1 });
  if (request.method === 'HEAD' || info.size === 0) return response.end();
  const stream = fs.createReadStream(file, { start: first, end: last });
  stream.on('error', () => response.destroy());
  response.on('close', () => stream.destroy());
  return stream.pipe(response);
}

/** Only this machine's own names: a page elsewhere whose name is made to point here is not answered. */
function isLocalHost(host = '') {
  return /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host);
}

function listen(server, port) {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/**
 * Serves `mounts` ({prefix: folder}) on 127.0.0.1, with `headers` beside its own. `ports` are tried in order; 0 is any.
 * `intercept(request, response)` may answer instead, and says whether it does. Answers `{url, close}`.
 */
export async function serve({ mounts = PAGE_MOUNTS, ports = [0], headers = {}, intercept = () => false } = {}) {
  const server = http.createServer((request, response) => {
    if (!isLocalHost(request.headers.host)) return refuse(response, 403, 'this server answers to localhost only');
    if (intercept(request, response)) return undefined;
    return answer(mounts, headers, request, response);
  });
  for (const [index, port] of ports.entries()) {
    try {
      await listen(server, port);
      break;
    } catch (error) {
      if (error.code !== 'EADDRINUSE' || index === ports.length - 1) throw error;
    }
  }
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { url: `http://localhost:${server.address().port}/`, close };
}
