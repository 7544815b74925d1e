import type { FastifyInstance } from "fastify";
import type { OpenApiDocument } from "../reference/openapi-document.ts";
import { refuseOtherMethods } from "../edge/refuse-other-methods.ts";
import { freezeAnswer, sendFrozen } from "./frozen-answer.ts";

/**
 * Serves the OpenAPI document of the public API. It holds nothing secret, so clients can read it before they have a
 * key.
 */
export function getOpenApi(server: FastifyInstance, document: OpenApiDocument): void {
  const answer = freezeAnswer(JSON.stringify(document), "application/json; charset=utf-8");
  server.get("/openapi.json", async (request, reply) => sendFrozen(request, reply, answer));
  refuseOtherMethods(server, "/openapi.json", ["GET", "HEAD"]);
}
