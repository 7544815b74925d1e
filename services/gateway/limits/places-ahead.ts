import { sleep, type Clock, type Timer } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { BusyKey } from "./busy-key.ts";
import { lentPlaceUsableMs } from "./lending.ts";
import {
  needsSeat,
  type Admission,
  type Admitted,
  type Demand,
  type Hold,
  type LendingLimits,
  type Limits,
  type Standing,
} from "./limits.ts";

interface PlacesAheadOptions {
  readonly store: LendingLimits;
  /** Gives back a hold that no request needed. */
  readonly giveBack: (hold: Hold) => void;
  /** Releases a hold that the store may or may not have made. */
  readonly onUncertain: (hold: Hold) => void;
  readonly clock: Clock;
}

/** The span over which requests of a key are counted. Unused places are looked for once a span. */
const spanMs = lentPlaceUsableMs / 2;

/**
 * Places within the limits of busy keys, taken before the requests that need them arrive. Most of these requests then
 * wait for no store, and one call to the store serves many of them. A place is charged when it is taken, and given back
 * when no request needs it soon. A request that is refused while places are lent waits until these have come back, and
 * asks again. An empty place therefore refuses no request.
 */
export class PlacesAhead implements Limits {
  readonly #options: PlacesAheadOptions;
  readonly #keys = new Map<string, BusyKey>();
  #looking: Timer | undefined;
  #stopped = false;

  constructor(options: PlacesAheadOptions) {
    this.#options = options;
  }

  admit(demand: Demand): Admission | Promise<Admission> {
    return (this.#stopped ? undefined : this.#take(demand)) ?? this.#ask(demand);
  }

  standing(key: Pick<Demand, "keyId" | "limits">): Promise<Standing> {
    return this.#options.store.standing(key);
  }

  /** Gives back all unused places. Later demands go to the store. */
  stop(): void {
    this.#stopped = true;
    this.#looking?.cancel();
    for (const key of this.#keys.values()) this.#giveBack(key.leave());
    this.#keys.clear();
  }

  async #ask(demand: Demand): Promise<Admission> {
    const { store, clock } = this.#options;
    const admission = await store.admit(demand);
    if (admission.outcome === "admitted" || admission.lentForMs === undefined) return admission;
    // The store may have lent the missing place to this very gateway after the demand was sent.
    const place = this.#keys.get(demand.keyId)?.take(demand, clock.now());
    if (place !== undefined) return place;
    await sleep(clock, admission.lentForMs);
    return store.admit(demand);
  }

  #take(demand: Demand): Admitted | undefined {
    const nowMs = this.#options.clock.now();
    const key = this.#keyOf(demand);
    key.count(demand);
    const place = key.take(demand, nowMs);
    const lacking = key.lacks(nowMs);
    if (lacking > 0) void this.#lend(demand, key, lacking);
    return place;
  }

  /**
   * Returns the busy key for these limits. Places belong to the limits under which they were taken, so a change gives
   * them back.
   */
  #keyOf({ keyId, limits }: Demand): BusyKey {
    const known = this.#keys.get(keyId);
    if (known?.isUnder(limits) === true) return known;
    if (known !== undefined) this.#giveBack(known.leave());
    const key = new BusyKey(limits);
    this.#keys.set(keyId, key);
    this.#looking ??= this.#options.clock.every(spanMs, () => this.#look());
    return key;
  }

  async #lend({ keyId, limits }: Demand, key: BusyKey, count: number): Promise<void> {
    const { store, onUncertain, clock } = this.#options;
    const { tokens } = key;
    const seats = Array.from({ length: count }, () => newToken());
    const usableUntilMs = clock.now() + lentPlaceUsableMs;
    key.asks();
    try {
      const admissions = await store.ahead({ keyId, limits, seats, tokens });
      if (admissions.length === 0) key.notLent(clock.now());
      else if (this.#keys.get(keyId) === key) key.lent(admissions.map(withoutSpent), { tokens, usableUntilMs });
      else this.#giveBack(admissions);
    } catch {
      // The next request asks for itself and reports a store that does not answer.
      key.notLent(clock.now());
      if (!needsSeat(limits)) return;
      for (const seat of seats) onUncertain({ keyId, limits, seat, tokens: 0, budgetTokens: 0, kept: "shared" });
    }
  }

  #look(): void {
    const nowMs = this.#options.clock.now();
    for (const [keyId, key] of this.#keys) {
      this.#giveBack(key.nextSpan(nowMs));
      if (key.isIdle) this.#keys.delete(keyId);
    }
    if (this.#keys.size > 0) return;
    this.#looking?.cancel();
    this.#looking = undefined;
  }

  #giveBack(admissions: readonly Admitted[]): void {
    for (const { hold } of admissions) this.#options.giveBack(hold);
  }
}

/** Removes `spent` from an admission: the number is out of date when the place is used. */
function withoutSpent({ outcome, hold, standing }: Admitted): Admitted {
  return { outcome, hold, standing };
}
