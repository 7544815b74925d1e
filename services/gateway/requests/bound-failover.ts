import { LRUCache } from "lru-cache";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import { RateBucket } from "#shared/process/rate-buckets.ts";
import type { Timing } from "#shared/protocol/timing.ts";

/** A request that can be told from others by its fingerprint. Two keys never have the same request. */
export interface Fingerprinted {
  readonly work: { readonly madePrint: string | undefined };
  /** Makes the fingerprint. Undefined once the body is released. */
  print(): string | undefined;
}

/**
 * The weight of a death. A runtime that breaks off under a request was most likely killed by it. A lost machine may
 * have been switched off, so three lost machines are needed.
 */
const weights = { runtime: 3, machine: 2 } as const;
const deadly = 6;
/** Limits the requests that are remembered at once. */
const requestsMax = 1_000;

/** The deaths under one request: a weight for each machine, which counts once however often it failed. */
interface Deaths {
  readonly byMachine: Map<string, number>;
  untilMs: number;
}

/**
 * Remembers requests under which runtimes died. After two machines such a request is not passed on to a third, nor when
 * its client repeats it. Official clients repeat failed requests, and would kill one machine after the other. Any
 * success clears the request.
 */
export class DeadlyRequests {
  /** The deaths by the fingerprint of their request. While there are none, `refuse` need not be called. */
  readonly remembered: { readonly size: number };
  readonly #timing: Timing;
  readonly #deaths = new LRUCache<string, Deaths>({ max: requestsMax });

  constructor(timing: Timing) {
    this.#timing = timing;
    this.remembered = this.#deaths;
  }

  died(what: keyof typeof weights, machine: string, request: Fingerprinted, nowMs: number): void {
    const print = request.print();
    if (print === undefined) return;
    const known = this.#deaths.get(print);
    const byMachine = known !== undefined && nowMs < known.untilMs ? known.byMachine : new Map<string, number>();
    byMachine.set(machine, Math.max(weights[what], byMachine.get(machine) ?? 0));
    const untilMs = nowMs + this.#timing.deadlyRememberMs;
    this.#deaths.set(print, { byMachine, untilMs });
  }

  /** Forgets a request that a machine answered, if `died` or `refuse` fingerprinted it before. */
  worked(request: Fingerprinted): void {
    const { madePrint } = request.work;
    if (madePrint !== undefined) this.#deaths.delete(madePrint);
  }

  /** Throws `poison_request` if enough machines died under this request. */
  refuse(request: Fingerprinted, nowMs: number): void {
    const print = request.print();
    const known = print === undefined ? undefined : this.#deaths.get(print);
    if (known === undefined || nowMs >= known.untilMs) return;
    const weight = known.byMachine.values().reduce((sum, each) => sum + each, 0);
    if (weight < deadly) return;
    throw new Fault("poison_request", {
      message:
        "The model servers that worked on this request broke off one after the other, so it is not passed on again for a while.",
    });
  }
}

interface BudgetTerms {
  /** The part of a retry that each request adds. */
  readonly share: number;
  /** Maximum of unused retries, besides the reserve. */
  readonly saved: number;
}

/**
 * A tenth of all requests may be placed on another machine, so that a failing fleet gets no extra load because it
 * fails.
 */
const retries: BudgetTerms = { share: 0.1, saved: 180 };

/**
 * Every request may move once to the next target of its route, and unused moves are kept for requests that need more.
 * The machines of a target may all fail at once, under every request that they run.
 */
export const moves: BudgetTerms = { share: 1, saved: 10_000 };

/** Retries that may follow each other, however few requests there were: a small site survives the loss of a machine. */
const reserve = { atOnce: 20, intervalMs: 1_000 };

/** Limits how often failed requests are placed once more. */
export class RetryBudget {
  readonly #clock: Pick<Clock, "now">;
  readonly #requests: { readonly count: number };
  readonly #terms: BudgetTerms;
  readonly #reserve = new RateBucket(reserve);
  #saved = 0;
  /** The requests that have added their part. */
  #counted = 0;

  /** `requests` counts the requests that came. */
  constructor(clock: Pick<Clock, "now">, requests: { readonly count: number }, terms: BudgetTerms = retries) {
    this.#clock = clock;
    this.#requests = requests;
    this.#terms = terms;
  }

  /** Takes one retry. True if the budget held one. */
  take(): boolean {
    const { count } = this.#requests;
    this.#saved = Math.min(this.#terms.saved, this.#saved + this.#terms.share * (count - this.#counted));
    this.#counted = count;
    if (this.#saved < 1) return this.#reserve.take(this.#clock.now()) === 0;
    this.#saved -= 1;
    return true;
  }
}
