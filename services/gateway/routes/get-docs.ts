import type { FastifyInstance, FastifyRequest } from "fastify";
import { docsPage, docsPolicy } from "../reference/docs-page.ts";
import type { OpenApiDocument } from "../reference/openapi-document.ts";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import { freezeAnswer, sendFrozen, type FrozenAnswer } from "./frozen-answer.ts";

/** Under how many names the page is kept ready: a gateway has one or two, and whoever asks may say any. */
const namesMax = 16;

const plainHost = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

/** The document as a page for people, with examples that work when they are pasted: they name this gateway as its reader does. */
export function getDocs(server: FastifyInstance, document: OpenApiDocument): void {
  const pages = new Map<string, FrozenAnswer>();
  const pageFor = (baseUrl: string): FrozenAnswer => {
    if (!pages.has(baseUrl) && pages.size >= namesMax) pages.clear();
    return pages.getOrInsertComputed(baseUrl, () =>
      freezeAnswer(docsPage(document, baseUrl), "text/html; charset=utf-8"),
    );
  };
  server.get("/docs", async (request, reply) => {
    reply.headers({ "content-security-policy": docsPolicy, "referrer-policy": "no-referrer" });
    return sendFrozen(request, reply, pageFor(baseUrlOf(request)));
  });
  refuseOtherMethods(server, "/docs", ["GET", "HEAD"]);
}

/** A name that could be anything else than a host's is not repeated in commands that people paste. */
function baseUrlOf({ protocol, host }: FastifyRequest): string {
  return `${protocol}://${plainHost.test(host) ? host.toLowerCase() : "localhost"}/v1`;
}
