import type { StateDatabase } from "#shared/keys/state-database.ts";
import { knownModelsMax, modelKnownForMs, type KnownModels, type ModelAcquaintance } from "./known-models.ts";

export class SqliteKnownModels implements KnownModels {
  readonly #database: StateDatabase;
  readonly #modelsMax: number;

  constructor(database: StateDatabase, options: { readonly modelsMax?: number } = {}) {
    this.#database = database;
    this.#modelsMax = options.modelsMax ?? knownModelsMax;
  }

  async remember(seen: { readonly modelIds: readonly string[]; readonly seenAtMs: number }): Promise<void> {
    const ids = JSON.stringify(seen.modelIds);
    const forgottenAtMs = seen.seenAtMs - modelKnownForMs;
    this.#database.change("remember models", (sql) => [
      sql.run`
        INSERT INTO known_models (id, seen_at) SELECT value, ${seen.seenAtMs} FROM json_each(${ids}) WHERE true
        ON CONFLICT DO UPDATE SET seen_at = max(seen_at, excluded.seen_at)`,
      sql.run`
        DELETE FROM known_models WHERE seen_at <= ${forgottenAtMs} OR id IN
        (SELECT id FROM known_models ORDER BY seen_at DESC LIMIT -1 OFFSET ${this.#modelsMax})`,
    ]);
  }

  async knows(modelId: string, nowMs: number): Promise<ModelAcquaintance> {
    const seenAfterMs = nowMs - modelKnownForMs;
    const row = this.#database.read(
      "look for a model",
      (sql) => sql.get`SELECT 1 FROM known_models WHERE id = ${modelId} AND seen_at > ${seenAfterMs}`,
    );
    return row === undefined ? "unknown" : "known";
  }
}
