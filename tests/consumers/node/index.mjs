// In Node the package can be imported, as servers do that render pages; what needs a browser says so.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Engine, PagewiseError } from 'pagewise';
import 'pagewise/ai-sdk';
import 'pagewise/prompt-api';
import { Router } from 'pagewise/remote';

const clear = (error) =>
  error instanceof PagewiseError &&
  error.code === 'no_webgpu' &&
  /browser/.test(error.message) &&
  error.cause === undefined;

await assert.rejects(Engine.load('/models/tiny-llama-f16.gguf'), clear);
await assert.rejects(Engine.load('smollm2-135m-instruct'), clear);
await assert.rejects(Engine.load('smollm2-135m-instruct', { share: true }), clear);
await assert.rejects(Engine.plan(new Blob(['GGUF'])), clear);
await assert.rejects(Engine.inspect(new Blob(['GGUF'])), clear);
await assert.rejects(Engine.models.list(), clear);
await assert.rejects(Engine.models.download('https://models.example/model.gguf'), clear);

// A server can still ask another one.
const remote = { baseURL: 'https://models.example/v1' };
const router = await Router.load('smollm2-135m-instruct', { policy: 'prefer-local', remote });
assert.equal(router.error.code, 'no_webgpu');

// Node that can require modules gets the same one.
const require = createRequire(import.meta.url);
if (process.features.require_module) assert.equal(require('pagewise').Engine, Engine);
