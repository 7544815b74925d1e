import type { MsgHdrs } from "@nats-io/nats-core";

/**
 * The headers of a message to NATS, written at once. The library's own look through all that are there for each one that
 * is added, twice: the thirteen of a job take longer than everything else of its message. Of headers that go out it asks
 * for nothing but their bytes.
 */
export function headerLines(headers: Readonly<Record<string, string>>): MsgHdrs {
  let text = "NATS/1.0\r\n";
  for (const name in headers) text += `${name}: ${insistOnOneLine(headers[name] ?? "")}\r\n`;
  const bytes = Buffer.from(`${text}\r\n`);
  return { encode: () => bytes } as unknown as MsgHdrs;
}

function insistOnOneLine(value: string): string {
  if (value.includes("\n") || value.includes("\r")) throw new TypeError("a header of a message holds a line break");
  return value;
}
