import type { FastifyInstance, FastifyRequest } from "fastify";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import { docsPage, docsPolicy } from "../reference/page/docs-page.ts";
import type { OpenApiDocument } from "../reference/openapi-document.ts";
import { freezeAnswer, sendFrozen } from "./frozen-answer.ts";

/** Stands in the page for the name of the gateway until somebody asks for it by one. */
const someGateway = "https://gateway.invalid/v1";

const plainHost = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** The document as a page for people, with examples that work when they are pasted: they name this gateway as its reader does. */
export function getDocs(server: FastifyInstance, document: OpenApiDocument): void {
  const parts = docsPage(document, someGateway).split(someGateway);
  server.get("/docs", async (request, reply) => {
    reply.headers({ "content-security-policy": docsPolicy, "referrer-policy": "no-referrer" });
    return sendFrozen(request, reply, freezeAnswer(parts.join(baseUrlOf(request)), "text/html; charset=utf-8"));
  });
  refuseOtherMethods(server, "/docs", ["GET", "HEAD"]);
}

/** A name that could be anything else than a host's is not repeated in commands that people paste. */
function baseUrlOf({ protocol, host }: FastifyRequest): string {
  return `${protocol}://${plainHost.test(host) ? host.toLowerCase() : "localhost"}/v1`;
}
