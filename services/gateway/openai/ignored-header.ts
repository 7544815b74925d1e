const namesMax = 30;
const nameCharactersMax = 100;

/** The names of ignored fields as a header, or nothing when there are none. Names are a caller's text, so they are encoded. */
export function ignoredHeader(ignored: readonly string[]): string | undefined {
  if (ignored.length === 0) return undefined;
  const named = ignored.slice(0, namesMax).map((name) => encode(name.slice(0, nameCharactersMax)));
  const rest = ignored.length - named.length;
  return rest > 0 ? `${named.join(",")},+${rest} more` : named.join(",");
}

function encode(name: string): string {
  return name.replace(/[^\w.[\]-]+/g, (odd) => `%${Buffer.from(odd).toString("hex").match(/../g)?.join("%") ?? ""}`);
}
