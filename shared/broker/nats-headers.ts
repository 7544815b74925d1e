import type { Msg } from "@nats-io/nats-core";

const begin = "NATS/1.0";
const end = "\r\n\r\n";

/**
 * Reads the headers of a NATS message at once, and keeps the first value of each name. The library's own parser takes
 * longer than everything else that an agent does to read a job. The library stores the header bytes right before the
 * data bytes, and the message size gives their number. Where that does not hold, the library's parser is used.
 */
export function readNatsHeaders(message: Msg): ReadonlyMap<string, string> {
  const text = headerText(message);
  return text === undefined ? asTheLibraryReads(message) : linesOf(text);
}

/**
 * A message with `size()`: the bytes of subject, reply, headers and data. The library's messages have it; its type does
 * not declare it.
 */
interface Sized {
  size?(): number;
}

function headerText(message: Msg & Sized): string | undefined {
  const { data, subject, reply = "" } = message;
  const bytes = (message.size?.() ?? 0) - subject.length - reply.length - data.byteLength;
  if (bytes < begin.length + end.length || bytes > data.byteOffset) return undefined;
  const text = Buffer.from(data.buffer, data.byteOffset - bytes, bytes).toString();
  return text.startsWith(`${begin}\r\n`) && text.endsWith(end) ? text : undefined;
}

function linesOf(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  let from = begin.length + 2;
  for (let at = text.indexOf("\r\n", from); at > from; at = text.indexOf("\r\n", from)) {
    const colon = text.indexOf(":", from);
    if (colon >= from && colon < at) {
      const name = text.slice(from, colon);
      if (!headers.has(name)) headers.set(name, text.slice(colon + 1, at).trim());
    }
    from = at + 2;
  }
  return headers;
}

function asTheLibraryReads({ headers }: Msg): Map<string, string> {
  const read = new Map<string, string>();
  for (const name of headers?.keys() ?? []) read.set(name, headers?.get(name) ?? "");
  return read;
}
