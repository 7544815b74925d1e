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
