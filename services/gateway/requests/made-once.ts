import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { Fault, type FaultCode } from "#shared/fault/fault.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import {
  type IdempotencyRecords,
  type IdempotencyRecord,
  type IdempotencyName,
  idempotencyKeysMax,
} from "../jobs/idempotency-records.ts";
import type { AnswerJob, AnswerPosition, Wait } from "../jobs/resume-answer.ts";
import { cancelledByOperator } from "./running-requests.ts";

/** Names an answer that is made once, however often its request is repeated. */
export const idempotencyHeader = "idempotency-key";
/** Tells that an answer was made for an earlier request with the same name. */
export const replayedHeader = "idempotent-replayed";

const nameCharactersMax = 255;

/** Returns the name that a client gives its answer, as a digest. */
export function onceName({ [idempotencyHeader]: name }: IncomingHttpHeaders, keyId: string): IdempotencyName {
  if (typeof name !== "string" || name.length > nameCharactersMax) {
    const message = `The header 'Idempotency-Key' must have at most ${nameCharactersMax} characters (nameCharactersMax).`;
    throw refusal("invalid_value", message);
  }
  return { keyId, name: digestOf(name) };
}

export function digestOf(...parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest("base64url");
}

/** Stands in a record for the job of an answer that its machine has lost. */
export const lostJob = "lost";
/** Stands in a record for the job of an answer that an operator cancelled: no repeat of its request makes it anew. */
const cancelledJob = "cancelled";

type NameChange = { [Field in keyof AnswerJob]?: string | undefined } & {
  name?: IdempotencyName;
  from?: string | undefined;
};

interface OnceParts {
  readonly idempotencyRecords: IdempotencyRecords;
  readonly clock: Clock;
  readonly timing: Timing;
}

/** Outcomes of a request that leave its answer as it is on its machine. */
const leavingAnswers: ReadonlySet<FaultCode | "ok"> = new Set(["backend_unavailable", "client_closed"]);

/**
 * One request for an answer that is made once. Of the requests with its name, one at a time has the turn, as long as its
 * client is there: only this one makes the answer, or takes it over from a request whose client has left.
 */
export class AnswerMadeOnce {
  readonly #name: IdempotencyName;
  readonly #turn: IdempotencyName;
  readonly #parts: OnceParts;
  readonly #untilMs: number;
  readonly #own: IdempotencyRecord;
  #job: AnswerJob | undefined;
  /** Renews the turn. A killed gateway leaves it for a moment only. */
  #keepingTurn: Timer | undefined;
  /** Renews the record until a machine has the answer. */
  #renewing: Timer | undefined;

  constructor(name: IdempotencyName, { owner, digest }: Pick<IdempotencyRecord, "owner" | "digest">, parts: OnceParts) {
    this.#name = name;
    this.#turn = { ...name, keyId: `${name.keyId}:turns` };
    this.#own = { owner, digest };
    this.#parts = parts;
    this.#untilMs = parts.clock.now() + parts.timing.jobTotalMs;
  }

  /**
   * Waits for the turn and takes the name. Returns the position in the answer if another request made it, and takes it over
   * from that request. Undefined if this one is to make it. Throws if the name stands for another request.
   */
  async take(wait: Wait): Promise<AnswerPosition | undefined> {
    const { clock, timing } = this.#parts;
    const turnMs = timing.gatewayGoneAfterMs;
    const forMs = timing.onceForMs * 2;
    await this.#takeName(this.#turn, turnMs, wait);
    this.#keepingTurn ??= clock.every(timing.leaseIntervalMs, () => void this.#write(turnMs, { name: this.#turn }));
    const { owner, machine, job } = await this.#takeName(this.#name, forMs, wait);
    if (job === cancelledJob) throw cancelledByOperator();
    if (machine !== undefined && job !== undefined) {
      await this.madeBy({ machine, job }, owner);
      return { machine, job, event: 0 };
    }
    this.#renewing = clock.every(timing.onceForMs, () => void this.#write(forMs));
    return undefined;
  }

  /** Gives the turn to the next request: this one is over, or its client has left. */
  leave(): void {
    if (this.#keepingTurn === undefined) return;
    this.#keepingTurn.cancel();
    void this.#write(0, { name: this.#turn });
  }

  /** Returns the record of a name once it is this request's, or that of another one with a job. */
  async #takeName(name: IdempotencyName, forMs: number, wait: Wait): Promise<IdempotencyRecord> {
    const { idempotencyRecords, clock } = this.#parts;
    const { owner, digest } = this.#own;
    for (;;) {
      const record = await idempotencyRecords.put(name, this.#own, { forMs });
      if (record === undefined) throw refusal("idempotency_keys_used_up", tooManyKeys);
      if (record.digest !== digest) throw refusal("idempotency_key_reused", otherRequest);
      if (record.owner === owner || record.job !== undefined) return record;
      if (clock.now() > this.#untilMs) throw refusal("idempotency_key_in_use", keyInUse);
      await wait();
    }
  }

  /** Notes the machine that makes the answer, which ends in time and is kept for a while. */
  async madeBy({ machine, job }: AnswerJob, from?: string): Promise<void> {
    const { jobTotalMs, resumableForMs } = this.#parts.timing;
    this.#renewing?.cancel();
    this.#job = { machine, job };
    await this.#write(jobTotalMs + resumableForMs, { ...this.#job, from });
  }

  /** Keeps the name for as long as machines keep a made answer. */
  async made(): Promise<void> {
    this.#renewing?.cancel();
    await this.#write(this.#parts.timing.resumableForMs, this.#job);
  }

  /** True if a machine has the answer, and goes on with it or keeps it after such an outcome of this request. */
  outlasts(outcome: FaultCode | "ok" | undefined): boolean {
    return this.#job !== undefined && outcome !== undefined && leavingAnswers.has(outcome);
  }

  /**
   * Lets the next request make an answer anew that was not made, or that `machine` has lost; none if an operator cancelled
   * this one.
   */
  async release(machine: string | undefined, outcome: FaultCode | "ok" | undefined): Promise<void> {
    this.#renewing?.cancel();
    const { resumableForMs } = this.#parts.timing;
    if (outcome === "cancelled_by_operator") return this.#write(resumableForMs, { machine: "", job: cancelledJob });
    return this.#write(machine === undefined ? 0 : resumableForMs, { machine, job: lostJob });
  }

  /** While the store is away the record ends by itself, and what was said to the client holds. */
  async #write(forMs: number, { name = this.#name, from = this.#own.owner, ...job }: NameChange = {}): Promise<void> {
    const record = { ...this.#own, ...job };
    await this.#parts.idempotencyRecords.put(name, record, { from, forMs }).catch(() => undefined);
  }
}

const otherRequest =
  "The 'Idempotency-Key' stands for another request of this key, with another body. Send a new one for it.";
const keyInUse = "Another request with this 'Idempotency-Key' is still under way (jobTotalMs). Ask again in a moment.";
const tooManyKeys = `This key has ${idempotencyKeysMax} answers with an 'Idempotency-Key' that are under way or kept (idempotencyKeysMax). Ask again in a moment, or without that header.`;

function refusal(code: FaultCode, message: string): Fault {
  return new Fault(code, { message, param: "Idempotency-Key" });
}
