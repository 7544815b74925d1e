/** The prices of a model. The browser loads this file: it imports no schema. */
export const priceTerms = {
  input: "a million tokens of prompts",
  cached: "a million tokens of prompts that a machine had cached, if it is another one than that of the others",
  output: "a million tokens of answers",
  second: "a second of a recording",
  image: "an image that is made",
  request: "a request that is answered",
} as const;
export type PriceTerm = keyof typeof priceTerms;
export const priceTermNames = Object.keys(priceTerms) as readonly PriceTerm[];

/** The prices of a model, each in millionths. */
export type Prices = { readonly [Term in PriceTerm]?: number | undefined };
