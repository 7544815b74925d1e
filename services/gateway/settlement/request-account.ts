import type { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { UsageRow } from "#shared/usage/usage-row.ts";
import { AnswerCourse, type AnswerMeter } from "../dispatch/answer-course.ts";
import type { JobListener } from "../dispatch/follow-frames.ts";
import { limitFault } from "../limits/limit-fault.ts";
import {
  budgetPeriodAt,
  type Admission,
  type Demand,
  type Hold,
  type Limits,
  type Standing,
} from "../limits/limits.ts";
import type { RequestFacts, RequestOutcome } from "../meters/request-facts.ts";
import type { Settlements } from "./settlements.ts";

/** A machine's word is believed up to here, for its prompt and for its answer: no model has a longer window. */
export const tokensPerRequestMax = 100_000_000;

/** With these a request ends of whose model nobody can say that there ever was one. */
const inventedIn: ReadonlySet<string> = new Set(["model_not_found", "backend_unavailable", "client_closed"]);

/** A seat that was left at another gateway is written in the books within 100 ms; after this long it is surely free. */
const seatAgainMs = 150;

export interface AccountMeans {
  readonly limits: Limits;
  readonly settlements: Settlements;
  readonly clock: Clock;
  readonly log: Pick<Log, "info">;
  readonly meter?: AnswerMeter;
}

/** A request that is about to run. */
export interface Demanding {
  /** What its prompt is expected to cost, and all of it at most. */
  readonly promptTokens: number;
  readonly tokens: number;
  readonly signal: AbortSignal;
}

/** How a request's key stands once the request has asked, and what it ends in if it may not run. */
export interface Placed {
  readonly standing: Standing;
  readonly fault: Fault | undefined;
}

const unlimited: Placed = { standing: {}, fault: undefined };

/**
 * What one request asks of its key and takes of it, from the proof of the key to its one end: admission under the key's
 * limits, and exactly one usage record, whatever becomes of the request. What a client was not delivered is not counted.
 */
export class RequestAccount {
  readonly #means: AccountMeans;
  readonly #request: string;
  readonly #key: KeyRecord;
  readonly #startedAtMs: number;
  readonly #course: AnswerCourse;
  #model: string | undefined;
  #streamed = false;
  #hold: Hold | undefined;
  #promptTokens = 0;
  #outcome: RequestOutcome | undefined;
  #endedAtMs: number | undefined;
  /** It is not known yet what it holds, and it is settled when that is. */
  #admitting = false;
  #closed = false;

  constructor(
    request: { readonly id: string; readonly key: KeyRecord; readonly arrivedAtMs?: number },
    means: AccountMeans,
  ) {
    this.#request = request.id;
    this.#key = request.key;
    this.#means = means;
    this.#startedAtMs = request.arrivedAtMs ?? means.clock.now();
    this.#course = new AnswerCourse(means);
  }

  asksFor(model: string, { streamed }: { readonly streamed: boolean }): void {
    this.#model = model;
    this.#streamed = streamed;
  }

  /** All that is known of the request so far. */
  get facts(): RequestFacts {
    const { jobs, machine, model, failovers, acceptedAtMs, firstAtMs } = this.#course;
    const startedAtMs = this.#startedAtMs;
    const { promptTokens, completionTokens } = this.#taken();
    return {
      key: this.#key.id,
      model: this.#model,
      streamed: this.#streamed,
      outcome: this.#outcome,
      answer: {
        jobs,
        machine,
        model,
        failovers,
        acceptedMs: since(startedAtMs, acceptedAtMs),
        firstTokenMs: since(startedAtMs, firstAtMs),
        endedMs: since(startedAtMs, this.#endedAtMs),
        promptTokens,
        completionTokens,
      },
    };
  }

  /** Asks for the request's place within its key's limits. It may run unless a fault says which one it would break. */
  admit({ promptTokens, tokens, signal }: Demanding): Placed | Promise<Placed> {
    // It is settled already, and what it would hold from now on nobody would give back.
    signal.throwIfAborted();
    this.#promptTokens = promptTokens;
    const { limits } = this.#key;
    if (limits === undefined) return unlimited;
    const demand = { keyId: this.#key.id, limits, tokens, seat: newToken() };
    const admission = this.#means.limits.admit(demand);
    const isKnown = !(admission instanceof Promise) && !isWorthAnother(admission);
    return isKnown ? this.#place(demand, admission) : this.#placeLater(demand, admission, signal);
  }

  async #placeLater(demand: Demand, asked: Admission | Promise<Admission>, signal: AbortSignal): Promise<Placed> {
    const { limits: kept, clock } = this.#means;
    this.#admitting = true;
    try {
      let admission = await asked;
      if (isWorthAnother(admission)) {
        await sleep(clock, seatAgainMs, signal);
        admission = await kept.admit({ ...demand, seat: newToken() });
      }
      return this.#place(demand, admission);
    } finally {
      this.#admitting = false;
      if (this.#closed) this.#settle();
    }
  }

  #place(demand: Demand, admission: Admission): Placed {
    const { standing } = admission;
    if (admission.outcome === "refused") return { standing, fault: limitFault(admission, demand) };
    this.#hold = admission.hold;
    this.#means.settlements.begin(admission.hold);
    return { standing, fault: undefined };
  }

  /** Follows an answer on its way to whoever is to have it. */
  following(listener: JobListener): JobListener {
    return this.#course.following(listener, { streamed: this.#streamed });
  }

  /** The first word counts: what a failure leads to is not another. */
  endedIn(outcome: RequestOutcome): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.#endedAtMs = this.#means.clock.now();
  }

  /** Settles the request, once. One of which nobody said how it ended was left by its client. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.endedIn("client_closed");
    this.#course.end();
    if (!this.#admitting) this.#settle();
  }

  #settle(): void {
    const { clock, log, settlements } = this.#means;
    const { id: keyId } = this.#key;
    const outcome = this.#outcome ?? "client_closed";
    const { machine, firstAtMs } = this.#course;
    const { promptTokens, completionTokens } = this.#taken();
    const usedTokens = promptTokens + completionTokens;
    const durationMs = Math.round(clock.now() - this.#startedAtMs);
    const firstTokenMs = firstAtMs === undefined ? undefined : Math.round(firstAtMs - this.#startedAtMs);
    const usage: UsageRow = {
      day: budgetPeriodAt("day", clock.wall()).name,
      keyId,
      model: this.#bookedModel(outcome),
      requests: 1,
      failed: outcome === "ok" ? 0 : 1,
      promptTokens,
      completionTokens,
      answered: firstTokenMs === undefined ? 0 : 1,
      firstTokenMs: firstTokenMs ?? 0,
      durationMs,
    };
    settlements.end({
      hold: this.#hold,
      ran: machine !== undefined,
      usedTokens,
      usage,
    });
    log.info(
      {
        request: this.#request,
        key: keyId,
        model: this.#model,
        machine,
        promptTokens,
        completionTokens,
        firstTokenMs,
        durationMs,
        outcome,
      },
      "usage",
    );
  }

  /** Names that nobody may ever have had are the client's own invention, and would fill the books without end. */
  #bookedModel(outcome: RequestOutcome): string | null {
    const isInvented = this.#course.machine === undefined && inventedIn.has(outcome);
    return isInvented ? null : (this.#model ?? null);
  }

  /** As the machine says, if that can be; without its word, what was delivered, and of the prompt what it should have been. */
  #taken(): { promptTokens: number; completionTokens: number } {
    const { usage, outputTokens, firstAtMs } = this.#course;
    if (usage !== undefined) {
      const { promptTokens, completionTokens } = usage;
      return {
        promptTokens: Math.min(promptTokens, tokensPerRequestMax),
        completionTokens: Math.min(completionTokens, tokensPerRequestMax),
      };
    }
    return {
      promptTokens: firstAtMs === undefined ? 0 : this.#promptTokens,
      completionTokens: Math.min(outputTokens, tokensPerRequestMax),
    };
  }
}

function isWorthAnother(admission: Admission): boolean {
  return admission.outcome === "refused" && admission.by === "concurrency";
}

function since(startedAtMs: number, atMs: number | undefined): number | undefined {
  return atMs === undefined ? undefined : atMs - startedAtMs;
}
