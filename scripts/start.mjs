// npm start [-- --port N]: sets up, builds, fetches the default model and serves the page on this machine.
import { defaultModel, ensureModel } from './models.mjs';
import { buildPage } from './page.mjs';
import { serve } from './server.mjs';
import { main, UserError } from './shell.mjs';

const FIRST_PORT = 8080;
const NUM_PORTS = 20;

/** The port asked for with --port, or the first free one from 8080 on. */
export function portsFromArguments(args) {
  const index = args.findIndex((arg) => arg === '--port' || arg.startsWith('--port='));
  if (index === -1) return Array.from({ length: NUM_PORTS }, (_, offset) => FIRST_PORT + offset);
  const port = Number(args[index].split('=')[1] ?? args[index + 1]);
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw new UserError('--port takes a number from 0 to 65535');
  return [port];
}

await main(async () => {
  const ports = portsFromArguments(process.argv.slice(2));
  await buildPage();
  await ensureModel(defaultModel());
  const { url } = await serve({ ports });
  // Another port is another site for a browser, with conversations and models of its own.
  const { port } = new URL(url);
  if (ports.length > 1 && Number(port) !== FIRST_PORT)
    console.log(`\nPort ${FIRST_PORT} is taken. What a browser keeps for it is not seen under ${port}.`);
  console.log(`\nPagewise is at ${url}  (Ctrl+C ends it)`);
});
