// Debian packages: the last resort for what is neither installed nor had from a language's own registry.
import { attempt, capture, run, say, UserError, which } from './shell.mjs';

// biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg's own syntax
const isInstalled = (name) => capture('dpkg-query', ['-W', '-f=${db:Status-Status}', name]) === 'installed';

/** Installs Debian packages that are missing. `why` ends the sentence "needed ...". Without root it says what to run. */
export async function aptInstall(packages, why) {
  const missing = which('dpkg-query') ? packages.filter((name) => !isInstalled(name)) : packages;
  if (missing.length === 0) return;
  const command = `apt-get install -y --no-install-recommends ${missing.join(' ')}`;
  if (!which('apt-get')) {
    throw new UserError(
      `${missing.join(', ')} needed ${why}`,
      'install the equivalent packages of this system, then run this again',
    );
  }
  if (process.getuid() !== 0) {
    throw new UserError(
      `${missing.join(', ')} needed ${why}`,
      `sudo sh -c "apt-get update && ${command}" and then run this again`,
    );
  }
  say(`installing Debian packages ${why}: ${missing.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // Lists that are there already often suffice, and an update can fail where an install from them would not.
  const args = command.split(' ').slice(1);
  const first = await attempt('apt-get', ['-q', ...args], { quiet: true, env });
  if (first.code === 0) return;
  await attempt('apt-get', ['-q', 'update'], { env });
  await run('apt-get', ['-q', ...args], { env, hint: `see what apt-get says above; by hand: ${command}` });
}
