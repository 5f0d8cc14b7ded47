/** The generated module, for type checks before it was built; `wasm.ts` says what is used of it. */
declare module '*/wasm/pagewise.js' {
  export default function init(): Promise<unknown>;
  export function setPanicHandler(handler: (message: string) => void): void;
}

/** The generated module that compiles constraints. */
declare module '*/wasm/grammar.js' {
  export default function init(): Promise<unknown>;
  export const createGrammars: unknown;
}
