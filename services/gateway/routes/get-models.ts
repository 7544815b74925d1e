import type { FastifyInstance } from "fastify";
import { visibleTo } from "../access/authorize.ts";
import { callerOf } from "../access/caller.ts";
import { namedShortly } from "../openai/named-shortly.ts";
import type { LiveModels } from "../dispatch/live-models.ts";

/**
 * Serves the models that the calling key may use, as the machines report them at this moment. The route is the
 * contract's health check.
 */
export function getModels(server: FastifyInstance, parts: { models: LiveModels }): void {
  server.get("/models", async (request, reply) => {
    const { key } = callerOf(request);
    const { models, unanswered } = await parts.models.list(key.machines);
    if (unanswered.length > 0) reply.header("x-trunkline-unanswered", namedShortly(unanswered));
    return { object: "list", data: visibleTo(key, models) };
  });
}
