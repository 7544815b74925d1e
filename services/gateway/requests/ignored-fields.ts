import type { FastifyReply } from "fastify";

/** Names ignored fields in a header of the answer. */
export function nameIgnored(reply: FastifyReply, ignored: readonly string[]): void {
  const names = ignoredHeader(ignored);
  if (names === undefined) reply.removeHeader("x-trunkline-ignored");
  else reply.header("x-trunkline-ignored", names);
}

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

const bytesMax = 1_024;

/**
 * Joins names into a header value: as many as fit into `bytesMax`, then the number of the others. Clients refuse long
 * headers.
 */
export function namedShortly(names: readonly string[]): string {
  let value = "";
  for (const [index, name] of names.entries()) {
    const next = index === 0 ? name : `${value},${name}`;
    if (next.length > bytesMax)
      return value === "" ? `${names.length} names` : `${value},+${names.length - index} more`;
    value = next;
  }
  return value;
}
