import type { IncomingHttpHeaders } from "node:http";

/** Characters of a client's own request id; OpenAI accepts as many. */
export const clientRequestCharactersMax = 512;

interface ClientRequest {
  readonly client_request?: string;
  readonly client_request_left_out?: string;
}

const unnamed: ClientRequest = {};
const printable = /^[\x20-\x7e]+$/;

/**
 * Returns the log fields with the client's own request id (`x-client-request-id`). A client can then ask about a
 * request by that id. It never becomes the gateway's id of the request. An id that could garble a log is left out, and
 * the log line says so.
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
