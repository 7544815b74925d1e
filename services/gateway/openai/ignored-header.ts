import { namedShortly } from "./named-shortly.ts";

const nameCharactersMax = 100;

/**
 * Returns the names of ignored fields as a header value, or undefined when there are none. The client chooses the
 * names, so they are encoded.
 */
export function ignoredHeader(ignored: readonly string[]): string | undefined {
  if (ignored.length === 0) return undefined;
  return namedShortly(ignored.map((name) => encode(name.slice(0, nameCharactersMax))));
}

function encode(name: string): string {
  return name.replace(/[^\w.[\]-]+/g, (odd) => `%${Buffer.from(odd).toString("hex").match(/../g)?.join("%") ?? ""}`);
}
