import type { StateDatabase } from "#shared/keys/state-database.ts";
import {
  knownSightingsMax,
  modelKnownForMs,
  sightingsAskedFor,
  sightingsOf,
  type KnownModels,
  type ModelAcquaintance,
  type ModelsSeen,
} from "./known-models.ts";

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

  async knows(
    modelId: string,
    { nowMs, machines }: { readonly nowMs: number; readonly machines?: readonly string[] | undefined },
  ): Promise<ModelAcquaintance> {
    const seenAfterMs = nowMs - modelKnownForMs;
    const asked = JSON.stringify(sightingsAskedFor(modelId, machines));
    const row = this.#database.read(
      "look for a model",
      (sql) => sql.get`
        SELECT 1 FROM known_models WHERE id IN (SELECT value FROM json_each(${asked})) AND seen_at > ${seenAfterMs}`,
    );
    return row === undefined ? "unknown" : "known";
  }
}
