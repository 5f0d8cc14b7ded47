import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import { offline } from './build/offline';
import { preload } from './build/preload';

/**
 * What the page may do. It is a meta tag so that it holds on any static host; `frame-ancestors` cannot be set this way
 * and belongs to the server. `connect-src https:` is there because the visitor may name any model URL.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self' https: blob:",
  "manifest-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

/** Writes the policy into the built page only: Vite's dev server needs inline scripts and styles of its own. */
function contentSecurityPolicy(): Plugin {
  return {
    name: 'content-security-policy',
    apply: 'build',
    transformIndexHtml: () => [
      {
        tag: 'meta',
        attrs: { 'http-equiv': 'Content-Security-Policy', content: CONTENT_SECURITY_POLICY },
        injectTo: 'head-prepend',
      },
    ],
  };
}

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig(({ mode }) => {
  // `fake` (screenshots, interface work) and `test` (vitest) replace the engine by a scripted one that never ships.
  const fake = mode === 'fake' || mode === 'test';
  return {
    root: local('.'),
    // Relative, so that the built folder can be served from any path.
    base: './',
    resolve: { alias: fake ? [{ find: /^pagewise$/, replacement: local('tests/fake-engine.ts') }] : [] },
    esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
    plugins: [contentSecurityPolicy(), preload(), offline()],
    worker: { format: 'es' },
    // The package resolves its worker and .wasm by import.meta.url, which pre-bundling would move.
    optimizeDeps: { exclude: ['pagewise'] },
    build: {
      target: 'es2022',
      outDir: 'dist',
      emptyOutDir: true,
      // For scripts/page-size.mjs.
      manifest: true,
      // Files, not data: URLs, which the policy does not allow for scripts and workers.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      // The largest come when they are needed: character maps for PDF files, and PDF.js itself.
      chunkSizeWarningLimit: 1000,
    },
    server: { fs: { allow: [local('..')] } },
    test: {
      // DOMPurify supports jsdom and not happy-dom.
      environment: 'jsdom',
      setupFiles: ['tests/setup.ts'],
      include: ['tests/**/*.test.{ts,tsx}'],
      restoreMocks: true,
      // A test that waits without end fails; a busy machine may take its time.
      testTimeout: 60_000,
    },
  };
});
