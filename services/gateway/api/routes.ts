import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { Outer } from "./read-request.ts";
import type { RequestReader } from "./request-reader.ts";
import type { JobPlacer } from "../jobs/place-job.ts";
import type { FastifyInstance } from "fastify";
import { admitRequest } from "./admit-request.ts";
import { answerStream, answerWhole } from "./answer-request.ts";
import { visibleTo, mayUse, needsExactId } from "../keys/authenticate.ts";
import { callerOf } from "../keys/prove-callers.ts";
import { namedShortly } from "./answer-headers.ts";
import type { LiveModels } from "../jobs/live-models.ts";
import { unknownUrl } from "../http/answer-faults.ts";
import { modelNotFound, type MachineRanking } from "../fleet/rank-machines.ts";
import { findModel } from "../fleet/catalogues.ts";

/** The dependencies of the routes that ask a model for something. */
export interface InferenceMeans {
  readonly reader: RequestReader;
  readonly placer: JobPlacer;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly log: Log;
  /**
   * Returns a key's salt for the caches of runtimes; absent when the operator lets keys share what machines have
   * cached.
   */
  readonly cacheSaltOf?: ((key: KeyRecord) => string) | undefined;
}

/** Serves the routes that ask a model for something: each request is one job on one machine. */
export function inferenceRoutes(server: FastifyInstance, means: InferenceMeans): void {
  for (const [path, outer] of paths) {
    server.post<{ Body: Buffer | undefined }>(path, async (request, reply) => {
      const admitted = await admitRequest(outer, { request, reply }, means);
      await (admitted.streamed ? answerStream(admitted, means) : answerWhole(admitted, means));
    });
  }
}

const paths: readonly (readonly [path: string, outer: Outer])[] = [
  ["/chat/completions", "chat"],
  ["/responses", "response"],
  ["/completions", "completion"],
  ["/embeddings", "embeddings"],
];

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
