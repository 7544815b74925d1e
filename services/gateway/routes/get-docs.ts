import type { FastifyInstance, FastifyRequest } from "fastify";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import { docsPage, docsPolicy } from "../reference/page/docs-page.ts";
import type { OpenApiDocument } from "../reference/openapi-document.ts";
import { freezeAnswer, sendFrozen } from "./frozen-answer.ts";

/** Placeholder in the page for the base URL of the gateway, which comes from each request. */
const someGateway = "https://gateway.invalid/v1";

const plainHost = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/**
 * Serves the API document as a page for people. Its examples work when they are pasted: they name this gateway by the
 * host that the reader used.
 */
export function getDocs(server: FastifyInstance, document: OpenApiDocument): void {
  const parts = docsPage(document, someGateway).split(someGateway);
  server.get("/docs", async (request, reply) => {
    reply.headers({ "content-security-policy": docsPolicy, "referrer-policy": "no-referrer" });
    return sendFrozen(request, reply, freezeAnswer(parts.join(baseUrlOf(request)), "text/html; charset=utf-8"));
  });
  // A temporary redirect, so that no browser keeps it: a site may put a page of its own at `/`.
  server.get("/", async (_, reply) => reply.redirect("/docs", 302));
  refuseOtherMethods(server, "/docs", ["GET", "HEAD"]);
}

/**
 * Returns the base URL for examples. A `Host` that is not plainly a host name is not repeated in commands that people
 * paste.
 */
function baseUrlOf({ protocol, host }: FastifyRequest): string {
  return `${protocol}://${plainHost.test(host) ? host.toLowerCase() : "localhost"}/v1`;
}
