import { isIP } from "node:net";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";

/**
 * Refuses requests whose Host header is an unknown name. With DNS rebinding, any web page can point its own host name
 * at this port. The browser then lets the page read the answers. The Host header of such a request still has the
 * foreign name.
 */
export function insistOnKnownName(server: FastifyInstance, names: readonly string[]): void {
  server.addHook("onRequest", (request, _reply, done) => {
    done(isKnownName(request.headers.host, names) ? undefined : unknownName());
  });
}

/**
 * True if the host is an address, a name without a dot, or a configured name. Addresses need no DNS, and a name without
 * a dot belongs to this network. An HTTP/1.0 request may have no Host header.
 */
export function isKnownName(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined || names.includes("*")) return true;
  const name = host
    .toLowerCase()
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  return isIP(name) !== 0 || !name.includes(".") || name.endsWith(".localhost") || names.includes(name);
}

function unknownName(): Fault {
  return new Fault("bad_request", {
    message:
      "The operations port is not known by the name in this request's Host header. Ask for it by its address, or add the name to TRUNKLINE_OPERATIONS_HOSTS.",
  });
}
