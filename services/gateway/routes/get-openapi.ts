import type { FastifyInstance } from "fastify";
import type { OpenApiDocument } from "../reference/openapi-document.ts";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import { freezeAnswer, sendFrozen } from "./frozen-answer.ts";

/** What the public API says of itself. It holds nothing secret, so it can be read before there is a key. */
export function getOpenApi(server: FastifyInstance, document: OpenApiDocument): void {
  const answer = freezeAnswer(JSON.stringify(document), "application/json; charset=utf-8");
  server.get("/openapi.json", async (request, reply) => sendFrozen(request, reply, answer));
  refuseOtherMethods(server, "/openapi.json", ["GET", "HEAD"]);
}
