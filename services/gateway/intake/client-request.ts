import type { IncomingHttpHeaders } from "node:http";

/** How long a caller's own name for a request may be; OpenAI takes as much. */
export const clientRequestCharactersMax = 512;

interface ClientRequest {
  readonly client_request?: string;
  readonly client_request_left_out?: string;
}

const unnamed: ClientRequest = {};
const printable = /^[\x20-\x7e]+$/;

/**
 * A caller's own name for its request, for the line that the log has of it: whoever asks about a request can then name
 * it in their words. It never becomes our id. A name that could garble a log is left out, and the line says so.
 */
export function clientRequest(headers: IncomingHttpHeaders): ClientRequest {
  const name = headers["x-client-request-id"];
  if (typeof name !== "string" || name === "") return unnamed;
  if (name.length > clientRequestCharactersMax) return leftOut("too long (clientRequestCharactersMax)");
  return printable.test(name) ? { client_request: name } : leftOut("not printable ASCII");
}

function leftOut(reason: string): ClientRequest {
  return { client_request_left_out: reason };
}
