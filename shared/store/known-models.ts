import { dayMs } from "#shared/process/clock.ts";
import type { StateDatabase } from "./state-database.ts";
import type { StateStore } from "./open-key-store.ts";
import type { RedisConnection } from "../process/redis-connection.ts";

/** A model stays known for this long after a machine last offered it. */
export const modelKnownForMs = 30 * dayMs;

/** The most sightings that are kept. Beyond it the oldest are forgotten: a machine could make up names for ever. */
export const knownSightingsMax = 40_000;

export type ModelAcquaintance = "known" | "unknown";

/**
 * The models that machines have offered lately, present or not. They tell a model whose machines are away from a model
 * that does not exist. All gateways share them, so that all answer alike. Methods fail with a Fault
 * `backend_unavailable` while the store is unavailable. Times are milliseconds since 1970.
 */
export interface KnownModels {
  /** Notes the models that a machine offered at `seenAtMs`. The latest sighting wins, in whatever order they arrive. */
  remember(seen: ModelsSeen): Promise<void>;
  /** Returns `known` if any machine, or any of the named ones, offered the model lately. */
  knows(modelId: string, asked: ModelsQuery): Promise<ModelAcquaintance>;
}

interface ModelsQuery {
  readonly nowMs: number;
  readonly machines?: readonly string[] | undefined;
}

export interface ModelsSeen {
  readonly machine: string;
  readonly modelIds: readonly string[];
  readonly seenAtMs: number;
  /** True if the machine is external: its models are then known of that machine alone. */
  readonly external?: boolean | undefined;
}

/**
 * Returns the entries to store: each model on its machine, and each by itself. A space separates the two. A model's id
 * may be any text, and a machine's name has no space.
 */
function sightingsOf({ machine, modelIds, external }: ModelsSeen): string[] {
  return modelIds.flatMap((id) => [...(external ? [] : [` ${id}`]), `${machine} ${id}`]);
}

/** A model and the machine that offered it; the machine is empty in the entry of a model by itself. */
export interface Sighting {
  readonly machine: string;
  readonly model: string;
}

function readSighting(entry: string): Sighting {
  const at = entry.indexOf(" ");
  return { machine: entry.slice(0, at), model: entry.slice(at + 1) };
}

export function openKnownModels(state: StateStore): SqliteKnownModels | RedisKnownModels {
  return state.kind === "redis" ? new RedisKnownModels(state.redis) : new SqliteKnownModels(state.database);
}

function sightingsAskedFor(modelId: string, machines: readonly string[] | undefined): string[] {
  return machines === undefined ? [` ${modelId}`] : machines.map((machine) => `${machine} ${modelId}`);
}

export class SqliteKnownModels implements KnownModels {
  readonly #database: StateDatabase;
  readonly #sightingsMax: number;

  constructor(database: StateDatabase, options: { readonly sightingsMax?: number } = {}) {
    this.#database = database;
    this.#sightingsMax = options.sightingsMax ?? knownSightingsMax;
  }

  async remember(seen: ModelsSeen): Promise<void> {
    const ids = JSON.stringify(sightingsOf(seen));
    const forgottenAtMs = seen.seenAtMs - modelKnownForMs;
    this.#database.change("remember models", (sql) => [
      sql.run`
        INSERT INTO known_models (id, seen_at) SELECT value, ${seen.seenAtMs} FROM json_each(${ids}) WHERE true
        ON CONFLICT DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)`,
      sql.run`
        DELETE FROM known_models WHERE seen_at <= ${forgottenAtMs} OR id IN
        (SELECT id FROM known_models ORDER BY seen_at DESC LIMIT -1 OFFSET ${this.#sightingsMax})`,
    ]);
  }

  async knows(modelId: string, { nowMs, machines }: ModelsQuery): Promise<ModelAcquaintance> {
    const seenAfterMs = nowMs - modelKnownForMs;
    const asked = JSON.stringify(sightingsAskedFor(modelId, machines));
    const row = this.#database.read(
      "look for a model",
      (sql) => sql.get`
        SELECT 1 FROM known_models WHERE id IN (SELECT value FROM json_each(${asked})) AND seen_at > ${seenAfterMs}`,
    );
    return row === undefined ? "unknown" : "known";
  }

  /** Returns every model that is known. */
  async list(nowMs: number): Promise<readonly Sighting[]> {
    const seenAfterMs = nowMs - modelKnownForMs;
    const rows = this.#database.read(
      "list models",
      (sql) => sql.all`SELECT id FROM known_models WHERE seen_at > ${seenAfterMs}`,
    );
    return rows.map(({ id }) => readSighting(String(id)));
  }
}

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

  async knows(modelId: string, { nowMs, machines }: ModelsQuery): Promise<ModelAcquaintance> {
    const seenAt = await this.#redis.run("look for a model", (redis) =>
      redis.zmscore(knownModelsAt, ...sightingsAskedFor(modelId, machines)),
    );
    return seenAt.some((at) => at !== null && Number(at) > nowMs - modelKnownForMs) ? "known" : "unknown";
  }

  /** Returns every model that is known. */
  async list(nowMs: number): Promise<readonly Sighting[]> {
    const seenAfter = `(${nowMs - modelKnownForMs}`;
    const entries = await this.#redis.run("list models", (redis) =>
      redis.zrangebyscore(knownModelsAt, seenAfter, "+inf"),
    );
    return entries.map(readSighting);
  }
}
