import type { KeyChanges } from "#shared/records/key-changes.ts";
import type { RecordKind } from "#shared/records/audit-entry.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { until } from "../harness/until.ts";

type Told = { readonly id: KeyId } | RecordKind | "gap" | "heard" | "away";

/** Everything that one follower of the changes was told, in order. */
export class HeardChanges {
  readonly #told: Told[] = [];

  constructor(changes: KeyChanges) {
    changes.follow({
      onChange: (id) => void this.#told.push({ id }),
      onRecordChange: (kind) => void this.#told.push(kind),
      onGap: () => void this.#told.push("gap"),
      onHeard: () => void this.#told.push("heard"),
      onAway: () => void this.#told.push("away"),
    });
  }

  get ids(): readonly KeyId[] {
    return this.#told.flatMap((each) => (typeof each === "object" ? [each.id] : []));
  }

  get gaps(): number {
    return this.#told.filter((each) => each === "gap").length;
  }

  /** What was told since a moment, without the names of keys. */
  since(mark: number): ReadonlySet<Exclude<Told, object> | "change"> {
    return new Set(this.#told.slice(mark).map((each) => (typeof each === "object" ? "change" : each)));
  }

  /** For `since` and `until…`: now. */
  mark(): number {
    return this.#told.length;
  }

  untilTold(what: Exclude<Told, object>, options: { since?: number; timeoutMs?: number } = {}): Promise<true> {
    const { since = 0, timeoutMs = 5_000 } = options;
    return until(() => this.#told.includes(what, since), { what: `«${what}» to be told`, timeoutMs });
  }

  untilIds(count: number, timeoutMs = 5_000): Promise<true> {
    return until(() => this.ids.length >= count, { what: `${count} changes to be told`, timeoutMs });
  }
}
