import { namedShortly } from "./named-shortly.ts";

const nameCharactersMax = 100;

/** The names of ignored fields as a header, or nothing when there are none. Names are a caller's text, so they are encoded. */
export function ignoredHeader(ignored: readonly string[]): string | undefined {
  if (ignored.length === 0) return undefined;
  return namedShortly(ignored.map((name) => encode(name.slice(0, nameCharactersMax))));
}

function encode(name: string): string {
  return name.replace(/[^\w.[\]-]+/g, (odd) => `%${Buffer.from(odd).toString("hex").match(/../g)?.join("%") ?? ""}`);
}
