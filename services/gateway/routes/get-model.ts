import type { FastifyInstance } from "fastify";
import { unknownUrl } from "../edge/unknown-url.ts";
import { mayUse, needsExactId } from "../access/authorize.ts";
import { callerOf } from "../access/caller.ts";
import { modelNotFound, type MachineRanking } from "../fleet/rank-machines.ts";
import { findModel } from "../fleet/catalogues.ts";
import type { LiveModels } from "../dispatch/live-models.ts";

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
