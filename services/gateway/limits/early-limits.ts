import type { Fault } from "#shared/fault/fault.ts";
import type { KeyLimits, KeyRecord } from "#shared/keys/key-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import { limitFault } from "./limit-responses.ts";
import type { Admission } from "./limits.ts";

type Refused = Extract<Admission, { outcome: "refused" }>;

/** A refusal is remembered for no longer than this. */
const refusedForMsMax = 60_000;

/**
 * Judges a key before the body of its request is read, by what this gateway knows without asking the store. Charges
 * nothing: `Limits.admit` decides once the length of the request is known.
 */
export class EarlyLimits {
  readonly #clock: Pick<Clock, "now">;
  readonly #underWay = new Map<string, number>();
  /** Refusals by limits object, so that a change of a key's limits forgets refusals under the old ones. */
  readonly #refused = new WeakMap<KeyLimits, { readonly refusal: Refused; readonly untilMs: number }>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Returns the fault that ends a request of this key, if it is already known that the key may not run it. */
  judge({ id, limits }: Pick<KeyRecord, "id" | "limits">): Fault | undefined {
    if (limits === undefined) return undefined;
    const refused = this.#refused.get(limits);
    const waitMs = refused === undefined ? 0 : refused.untilMs - this.#clock.now();
    if (refused !== undefined && waitMs > 0) return limitFault({ ...refused.refusal, waitMs }, { limits, tokens: 0 });
    const { concurrency = Infinity } = limits;
    if ((this.#underWay.get(id) ?? 0) < concurrency) return undefined;
    const refusal: Refused = { outcome: "refused", by: "concurrency", waitMs: 0, standing: {} };
    return limitFault(refusal, { limits, tokens: 0 });
  }

  /** Counts a request whose body is about to be read, until the returned function is called. */
  begin({ id, limits }: Pick<KeyRecord, "id" | "limits">): () => void {
    if (limits?.concurrency === undefined) return () => undefined;
    this.#underWay.set(id, (this.#underWay.get(id) ?? 0) + 1);
    return () => {
      const others = (this.#underWay.get(id) ?? 1) - 1;
      if (others > 0) this.#underWay.set(id, others);
      else this.#underWay.delete(id);
    };
  }

  /** Remembers a refusal that holds for any request of the key, however short. */
  note(limits: KeyLimits, refusal: Refused): void {
    if (refusal.isProvisional || (refusal.by !== "requests" && refusal.by !== "budget")) return;
    const untilMs = this.#clock.now() + Math.min(refusal.waitMs, refusedForMsMax);
    this.#refused.set(limits, { refusal, untilMs });
  }

  /** Forgets the refusal of a key that got back what a request had taken. */
  forget(limits: KeyLimits): void {
    this.#refused.delete(limits);
  }
}
