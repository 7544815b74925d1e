import type { IncomingHttpHeaders } from "node:http";
import { isIPv4, isIPv6 } from "node:net";

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

/**
 * Returns the network by which an address is counted. For IPv6 this is the /64, because the owner of one address has at
 * least the 2⁶⁴ beside it. All texts of a proxy that are no address share one network.
 */
export function networkOf(told: string): string {
  const address = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(told)?.[1] ?? told;
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return "no address";
  const ipv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (ipv4 !== undefined) return ipv4;
  const [before = "", after] = address.split("::");
  const head = before.split(":");
  if (after === undefined) return head.slice(0, 4).join(":");
  const zeros = Math.max(0, 8 - head.length - after.split(":").length);
  const groups = [...head, ...Array.from({ length: zeros }, () => "0"), ...after.split(":")];
  return groups
    .slice(0, 4)
    .map((group) => (group === "" ? "0" : group))
    .join(":");
}
