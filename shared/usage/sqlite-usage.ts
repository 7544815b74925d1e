import type { StateDatabase } from "../keys/state-database.ts";
import { compareUsage, usageRow, type UsageRow, type UsageRows } from "./usage-row.ts";

/** Reads usage from SQLite. The table stores an empty text for no model, since the model is part of its key. */
export class SqliteUsage implements UsageRows {
  readonly #database: StateDatabase;

  constructor(database: StateDatabase) {
    this.#database = database;
  }

  async read({ from, to }: { readonly from: string; readonly to: string }): Promise<readonly UsageRow[]> {
    const rows = this.#database.read(
      "read usage",
      (sql) => sql.all`
        SELECT day, key_id AS keyId, nullif(model, '') AS model, requests, failed, prompt_tokens AS promptTokens,
          completion_tokens AS completionTokens, answered, first_token_ms AS firstTokenMs, duration_ms AS durationMs
        FROM usage WHERE day BETWEEN ${from} AND ${to}`,
    );
    return rows.map((row) => usageRow.parse(row)).sort(compareUsage);
  }
}
