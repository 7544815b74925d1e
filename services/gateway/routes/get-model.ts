import type { FastifyInstance } from "fastify";
import { mayUse } from "../access/authorize.ts";
import { keyOf } from "../access/key-of.ts";
import { modelNotFound, type JobPlacer } from "../dispatch/place-job.ts";
import { findModel } from "../fleet/find-model.ts";
import type { LiveModels } from "../fleet/live-models.ts";

/** One model by its id, which may hold `:` and `/`, written as they are or percent-encoded. */
export function getModel(server: FastifyInstance, parts: { models: LiveModels; placer: JobPlacer }): void {
  server.get<{ Params: { "*": string } }>("/models/*", async (request) => {
    const id = request.params["*"];
    if (id === "" || !mayUse(keyOf(request), id)) throw modelNotFound(id);
    const { models } = await parts.models.list();
    const model = findModel(models, id);
    if (model === undefined) throw await parts.placer.absence(id);
    return model;
  });
}
