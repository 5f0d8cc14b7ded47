/** The types behind the message catalogues: which keys there are, and which parameters each message takes. */

/** A message by plural category; `count` chooses. `other` is what every language has. */
export interface PluralForms {
  readonly zero?: string;
  readonly one?: string;
  readonly two?: string;
  readonly few?: string;
  readonly many?: string;
  readonly other: string;
}

/** Text with `{name}` where parameters go, or one text for each plural category. */
export type Message = string | PluralForms;

/** The messages of one area in one language. */
export type Catalogue = Readonly<Record<string, Message>>;

/** What another language has to have: every key of the English catalogue. A missing one does not compile. */
export type Translation<En extends Catalogue> = { readonly [Key in keyof En]: Message };

type NamesIn<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;

type ParamNames<M> = M extends string ? NamesIn<M> : M extends PluralForms ? NamesIn<M['other']> | 'count' : never;

/** What a message needs: a number is written as the language writes numbers. */
export type Params<M> = { readonly [Name in ParamNames<M>]: Name extends 'count' ? number : string | number };

/** The arguments after the key: none where the message takes none. */
export type ParamArgs<M> = [ParamNames<M>] extends [never] ? [] : [params: Params<M>];

/** Names of the parameters in a message, for the tests that compare languages. */
export function paramNames(message: Message): string[] {
  const texts = typeof message === 'string' ? [message] : Object.values<string>({ ...message });
  const names = texts.flatMap((text) => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? ''));
  return [...new Set(names)].sort();
}
