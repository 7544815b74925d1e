import type { FastifyInstance } from "fastify";
import { visibleTo, mayUse, needsExactId } from "../keys/authenticate.ts";
import { callerOf } from "../keys/prove-callers.ts";
import { namedShortly } from "./ignored-header.ts";
import type { LiveModels } from "../jobs/live-models.ts";
import { unknownUrl } from "../http/answer-faults.ts";
import { modelNotFound, type MachineRanking } from "../fleet/rank-machines.ts";
import { findModel } from "../fleet/catalogues.ts";

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

/** Serves one model by its id, which may hold `:` and `/`, written as they are or percent-encoded. */
export function getModel(server: FastifyInstance, parts: { models: LiveModels; ranking: MachineRanking }): void {
  server.get<{ Params: { "*": string } }>("/models/*", async (request) => {
    const id = request.params["*"];
    const { key } = callerOf(request);
    if (id === "") throw unknownUrl(request);
    if (!mayUse(key, id)) throw modelNotFound(id);
    const { models } = await parts.models.list(key.machines);
    const model = findModel(models, id, { isExact: needsExactId(key, id) });
    if (model === undefined) throw await parts.ranking.absence(id, key.machines);
    return model;
  });
}
