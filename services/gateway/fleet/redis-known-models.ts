import type { RedisConnection } from "#shared/process/redis-connection.ts";
import {
  knownSightingsMax,
  modelKnownForMs,
  sightingsAskedFor,
  sightingsOf,
  type KnownModels,
  type ModelAcquaintance,
  type ModelsSeen,
} from "./known-models.ts";

/** The sorted set of sightings, by the time at which each was last made. */
const knownModelsAt = "known-models";

export class RedisKnownModels implements KnownModels {
  readonly #redis: RedisConnection;
  readonly #sightingsMax: number;

  constructor(redis: RedisConnection, options: { readonly sightingsMax?: number } = {}) {
    this.#redis = redis;
    this.#sightingsMax = options.sightingsMax ?? knownSightingsMax;
  }

  async remember(seen: ModelsSeen): Promise<void> {
    if (seen.modelIds.length === 0) return;
    const sightings = sightingsOf(seen).flatMap((sighting) => [seen.seenAtMs, sighting]);
    await this.#redis.pipeline("remember models", (batch) =>
      batch
        .zadd(knownModelsAt, "GT", ...sightings)
        .zremrangebyscore(knownModelsAt, "-inf", seen.seenAtMs - modelKnownForMs)
        .zremrangebyrank(knownModelsAt, 0, -this.#sightingsMax - 1),
    );
  }

  async knows(
    modelId: string,
    { nowMs, machines }: { readonly nowMs: number; readonly machines?: readonly string[] | undefined },
  ): Promise<ModelAcquaintance> {
    const seenAt = await this.#redis.run("look for a model", (redis) =>
      redis.zmscore(knownModelsAt, ...sightingsAskedFor(modelId, machines)),
    );
    return seenAt.some((at) => at !== null && Number(at) > nowMs - modelKnownForMs) ? "known" : "unknown";
  }
}
