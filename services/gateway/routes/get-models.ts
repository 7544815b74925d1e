import type { FastifyInstance } from "fastify";
import { visibleTo } from "../access/authorize.ts";
import { keyOf } from "../access/key-of.ts";
import { namedShortly } from "../openai/named-shortly.ts";
import type { LiveModels } from "../fleet/live-models.ts";

/** The models that the calling key may use, as the machines tell them at this moment. The contract's health check. */
export function getModels(server: FastifyInstance, parts: { models: LiveModels }): void {
  server.get("/models", async (request, reply) => {
    const { models, unanswered } = await parts.models.list();
    if (unanswered.length > 0) reply.header("x-trunkline-unanswered", namedShortly(unanswered));
    return { object: "list", data: visibleTo(keyOf(request), models) };
  });
}
