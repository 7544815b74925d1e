import type { Clock, Timer } from "../process/clock.ts";
import { actionIn, isMachine } from "./audit-entry.ts";
import type { KeyChanges, KeyChangesListener } from "./key-changes.ts";
import { keyId } from "./key-token.ts";
import type { StateDatabase } from "./state-database.ts";

/** The polling interval. One poll takes microseconds. */
const lookIntervalMs = 100;

/**
 * Polls for new entries of the audit trail. Their writer is another process that has the file open, or this process.
 * The database would not report a process's own writes.
 */
export class SqliteKeyChanges implements KeyChanges {
  readonly #database: StateDatabase;
  readonly #clock: Pick<Clock, "every">;
  #timer: Timer | undefined;
  #lastSeen: number | undefined;

  constructor(database: StateDatabase, options: { readonly clock: Pick<Clock, "every"> }) {
    this.#database = database;
    this.#clock = options.clock;
  }

  follow(listener: KeyChangesListener): void {
    this.#look(listener);
    this.#timer = this.#clock.every(lookIntervalMs, () => this.#look(listener));
  }

  close(): void {
    this.#timer?.cancel();
  }

  #look(listener: KeyChangesListener): void {
    try {
      if (this.#lastSeen === undefined) {
        this.#lastSeen = this.#last();
        listener.onGap();
      }
      const lastSeen = this.#lastSeen;
      const rows = this.#database.read(
        "tell of changed keys",
        (sql) => sql.all`SELECT sequence, key_id, entry FROM audit WHERE sequence > ${lastSeen} ORDER BY sequence`,
      );
      for (const { sequence, key_id: subject, entry } of rows) {
        if (isMachine(String(subject))) listener.onMachineChange();
        else listener.onChange(keyId.parse(subject), actionIn(String(entry)));
        this.#lastSeen = Number(sequence);
      }
      listener.onHeard();
    } catch {
      this.#lastSeen = undefined;
      listener.onAway();
    }
  }

  #last(): number {
    const row = this.#database.read("find the last change", (sql) => sql.get`SELECT max(sequence) AS last FROM audit`);
    return Number(row?.["last"] ?? 0);
  }
}
