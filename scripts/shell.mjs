// Running other programs, and saying what is going on while they run.
import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

/** A failure that the user can mend: printed without a stack trace, with what to do next. */
export class UserError extends Error {
  constructor(message, hint) {
    super(message);
    this.hint = hint;
  }
}

export const seconds = (since_ms) => `${((Date.now() - since_ms) / 1000).toFixed(1)} s`;

const elsewhere = new AsyncLocalStorage();

/** Does work whose output, and that of the programs it runs, goes to `write` instead of the terminal. */
export const withOutput = (write, work) => elsewhere.run(write, work);

function print(chunk, stream = process.stdout) {
  const write = elsewhere.getStore();
  if (write) write(chunk);
  else stream.write(chunk);
}

export const say = (text) => print(`  ${text}\n`);

/** Announces a piece of work, does it, and says how long it took. */
export async function step(title, work) {
  const start_ms = Date.now();
  print(`> ${title}\n`);
  const result = await work();
  say(`${title}: ${seconds(start_ms)}`);
  return result;
}

/** The full path of a program on the PATH, or null. */
export function which(program) {
  const names = process.platform === 'win32' ? [`${program}.exe`, `${program}.cmd`] : [program];
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    for (const name of names) {
      const file = path.join(folder, name);
      if (folder !== '' && isExecutable(file)) return file;
    }
  }
  return null;
}

function isExecutable(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/** What a program prints on standard output, trimmed; null when it is missing or fails. */
export function capture(program, args, options = {}) {
  const result = spawnSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], ...options });
  return result.status === 0 ? result.stdout.trim() : null;
}

/** Runs a program with its output shown; throws when it fails. `hint` says what the user can do about it. */
export async function run(program, args, { hint, ...options } = {}) {
  const { code } = await attempt(program, args, options);
  if (code !== 0) throw new UserError(`\`${[program, ...args].join(' ')}\` failed (exit ${code})`, hint);
}

/**
 * Runs a program and returns `{code, output}`, whatever happens. The output is shown as it comes, unless `quiet`;
 * `timeout_s` ends the program (exit 124).
 */
export function attempt(program, args, { quiet = false, timeout_s, ...options } = {}) {
  const shell = process.platform === 'win32';
  return new Promise((resolve) => {
    const child = spawn(program, args, { shell, ...options, stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks = [];
    let timedOut = false;
    const timer =
      timeout_s &&
      setTimeout(() => {
        timedOut = true;
        child.kill('SIGKILL');
      }, timeout_s * 1000);
    const finish = (code, note = '') => {
      clearTimeout(timer);
      resolve({ code, output: Buffer.concat(chunks).toString('utf8') + note });
    };
    for (const name of ['stdout', 'stderr']) {
      child[name].on('data', (chunk) => {
        chunks.push(chunk);
        if (!quiet) print(chunk, process[name]);
      });
    }
    child.on('error', (error) => finish(127, error.message));
    child.on('close', (code) => finish(timedOut ? 124 : (code ?? 1), timedOut ? `\nstopped after ${timeout_s} s` : ''));
  });
}

/** Runs a script's main function; a `UserError` becomes a short message and exit code 1. */
export async function main(work) {
  try {
    await work();
  } catch (error) {
    console.error(`\nerror: ${error instanceof UserError ? error.message : error.stack}`);
    if (error.hint) console.error(`what to do: ${error.hint}`);
    process.exit(1);
  }
}
