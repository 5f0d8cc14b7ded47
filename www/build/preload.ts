/**
 * Names the first view's files in the page itself, so that they come beside the frame's and not after it. The address's hash,
 * which only the script sees, may ask for another view; most visits begin with the chat.
 */
import type { HtmlTagDescriptor, Plugin, Rollup } from 'vite';

const FIRST_VIEW = /\/src\/chat\/view\.tsx$/;

export function preload(): Plugin {
  return {
    name: 'preload',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler: (_html, { bundle = {}, chunk: entry }) => {
        const chunks = Object.values(bundle).filter((each) => each.type === 'chunk');
        const first = chunks.find((each) => each.moduleIds.some((id) => FIRST_VIEW.test(id)));
        if (!first) throw new Error('no chunk has the chat in it');
        const names = withImports(first, bundle);
        names.delete(entry?.fileName ?? '');
        const styles = chunks
          .filter(({ fileName }) => names.has(fileName))
          .flatMap(({ viteMetadata }) => [...(viteMetadata?.importedCss ?? [])]);
        return [...[...names].map(script), ...[...new Set(styles)].map(style)];
      },
    },
  };
}

/** A chunk and everything that it imports at once. */
function withImports(chunk: Rollup.OutputChunk, bundle: Rollup.OutputBundle): Set<string> {
  const names = new Set<string>();
  const visit = (name: string): void => {
    const found = bundle[name];
    if (found?.type !== 'chunk' || names.has(name)) return;
    names.add(name);
    for (const imported of found.imports) visit(imported);
  };
  visit(chunk.fileName);
  return names;
}

// `crossorigin` as Vite's own tags have it: a file fetched in another mode would be fetched twice.
const link = (attrs: HtmlTagDescriptor['attrs']): HtmlTagDescriptor => ({
  tag: 'link',
  attrs: { ...attrs, crossorigin: true },
  injectTo: 'head',
});
const script = (name: string): HtmlTagDescriptor => link({ rel: 'modulepreload', href: `./${name}` });
const style = (name: string): HtmlTagDescriptor => link({ rel: 'preload', as: 'style', href: `./${name}` });
