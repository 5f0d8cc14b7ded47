// Where things lie. Every script takes its folders from here.
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('..', import.meta.url)).replace(/[\\/]$/, '');

/** Cargo's output folder; the tools and stamps that these scripts make live in it too, so deleting it resets all. */
export const target = path.resolve(root, process.env.CARGO_TARGET_DIR ?? 'target');
export const tools = path.join(target, 'tools');
export const stamps = path.join(root, 'target', 'stamps');

export const models = path.join(root, 'models');
export const wasmOut = path.join(root, 'js', 'wasm');
export const jsDist = path.join(root, 'js', 'dist');
export const pageDist = path.join(root, 'www', 'dist');
