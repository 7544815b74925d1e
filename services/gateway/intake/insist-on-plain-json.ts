import type { IncomingHttpHeaders } from "node:http";
import { Fault } from "#shared/fault/fault.ts";

const mediaType = /^application\/json[ \t]*((?:;.*)?)$/i;
/** Matches one parameter with the separator before it; its value may be quoted. */
const parameter = /;[ \t]*(?:([\w!#$%&'*+.^`|~-]+)=(?:"([^"\\]*)"|([\w!#$%&'*+.^`|~-]+)))?[ \t]*/y;

/**
 * Throws unless the headers declare JSON in UTF-8 without compression. No reader has to guess what a body means, or how
 * large it becomes.
 */
export function insistOnPlainJson(headers: IncomingHttpHeaders): void {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") {
    throw unsupported("Send the body as it is, without Content-Encoding.");
  }
  const type = headers["content-type"];
  if (type === undefined) return;
  const parameters = mediaType.exec(type)?.[1];
  if (parameters === undefined) throw unsupported("Send the request with Content-Type: application/json.");
  insistOnUtf8(parameters);
}

function insistOnUtf8(parameters: string): void {
  let place = 0;
  while (place < parameters.length) {
    parameter.lastIndex = place;
    const found = parameter.exec(parameters);
    if (found === null) throw unsupported("Send the request with Content-Type: application/json.");
    const [whole, name, quoted, bare] = found;
    const value = quoted ?? bare ?? "";
    if (name?.toLowerCase() === "charset" && !/^utf-?8$/i.test(value)) throw unsupported("Send the body as UTF-8.");
    place += whole.length;
  }
}

function unsupported(message: string): Fault {
  return new Fault("unsupported_media_type", { message });
}
