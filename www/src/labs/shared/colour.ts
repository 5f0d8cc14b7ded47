/** The page's colours where a canvas draws: style sheets know them as tokens that the scheme decides. */

/** A token of tokens.css, such as `--reused`, as a colour that a canvas takes. */
export function colourOf(element: HTMLElement, token: string): string {
  // The token's own value may be a function of the scheme; a property that has it is resolved.
  const probe = document.createElement('span');
  probe.style.color = `var(${token})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

/** Calls back when the colours change: the visitor's choice, or the system's. Returns a function that ends it. */
export function onSchemeChange(callback: () => void): () => void {
  const query = window.matchMedia('(prefers-color-scheme: dark)');
  const observer = new MutationObserver(callback);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ['data-scheme'] });
  query.addEventListener?.('change', callback);
  return () => {
    observer.disconnect();
    query.removeEventListener?.('change', callback);
  };
}
