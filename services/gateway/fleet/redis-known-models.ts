import type { RedisConnection } from "#shared/process/redis-connection.ts";
import { knownModelsMax, modelKnownForMs, type KnownModels, type ModelAcquaintance } from "./known-models.ts";

/** Model ids by the time they were last seen. */
const knownModelsAt = "known-models";

export class RedisKnownModels implements KnownModels {
  readonly #redis: RedisConnection;
  readonly #modelsMax: number;

  constructor(redis: RedisConnection, options: { readonly modelsMax?: number } = {}) {
    this.#redis = redis;
    this.#modelsMax = options.modelsMax ?? knownModelsMax;
  }

  async remember(seen: { readonly modelIds: readonly string[]; readonly seenAtMs: number }): Promise<void> {
    if (seen.modelIds.length === 0) return;
    const sightings = seen.modelIds.flatMap((id) => [seen.seenAtMs, id]);
    await this.#redis.pipeline("remember models", (batch) =>
      batch
        .zadd(knownModelsAt, "GT", ...sightings)
        .zremrangebyscore(knownModelsAt, "-inf", seen.seenAtMs - modelKnownForMs)
        .zremrangebyrank(knownModelsAt, 0, -this.#modelsMax - 1),
    );
  }

  async knows(modelId: string, nowMs: number): Promise<ModelAcquaintance> {
    const seenAt = await this.#redis.run("look for a model", (redis) => redis.zscore(knownModelsAt, modelId));
    return seenAt !== null && Number(seenAt) > nowMs - modelKnownForMs ? "known" : "unknown";
  }
}
