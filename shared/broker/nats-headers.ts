import type { Msg } from "@nats-io/nats-core";

const begin = "NATS/1.0";
const end = "\r\n\r\n";

/**
 * The headers of a message from NATS, the first of each name, read at once. The library's own reading takes longer than
 * everything else that an agent does to understand a job; it keeps the bytes of the headers right before those of the
 * data, and tells by the size of the message how many they are. Wherever that is not so, its own reading counts.
 */
export function readNatsHeaders(message: Msg): ReadonlyMap<string, string> {
  const text = headerText(message);
  return text === undefined ? asTheLibraryReads(message) : linesOf(text);
}

/** All bytes of a message: subject, reply, headers and data. Its messages have this, though their type does not say so. */
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
