/** Builds the service worker beside the page, with the lists of files that it keeps. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'vite';

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Names in public/, which are written as they are. */
function publicFiles(folder: string, prefix = ''): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? publicFiles(join(folder, entry.name), `${prefix}${entry.name}/`) : [`${prefix}${entry.name}`],
  );
}

/** Whether a file is only needed once a model is loaded. */
function isEngine(name: string): boolean {
  return /\.wasm$|(^|\/)worker-[^/]*\.js$/.test(name);
}

export function offline(): Plugin {
  return {
    name: 'offline',
    apply: 'build',
    async writeBundle({ dir = '' }, bundle) {
      const hashed = Object.keys(bundle).filter((name) => name.startsWith('assets/'));
      const plain = ['index.html', ...publicFiles(local('../public'))];
      const revision = (name: string): string =>
        createHash('sha256')
          .update(readFileSync(join(dir, name)))
          .digest('hex')
          .slice(0, 16);
      const page = [
        ...hashed.filter((name) => !isEngine(name)).map((url) => ({ url, revision: null })),
        ...plain.map((url) => ({ url, revision: revision(url) })),
      ];
      await build({
        configFile: false,
        logLevel: 'warn',
        define: {
          PAGE_FILES: JSON.stringify(page),
          ENGINE_FILES: JSON.stringify(hashed.filter(isEngine)),
          'process.env.NODE_ENV': '"production"',
        },
        publicDir: false,
        build: {
          target: 'es2022',
          outDir: dir,
          emptyOutDir: false,
          lib: {
            entry: local('../src/offline/service-worker.ts'),
            formats: ['iife'],
            name: 'worker',
            fileName: () => 'service-worker.js',
          },
        },
      });
    },
  };
}
