import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { Fault, type FaultCode } from "#shared/fault/fault.ts";
import { type Clock, sleep, type Timer } from "#shared/process/clock.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { type AnswerClaims, type Claim, type ClaimName, claimsPerKeyMax } from "../jobs/answer-claims.ts";
import type { AnswerPlace } from "../jobs/resume-answer.ts";

/** Names an answer that is made once, however often its request is repeated. */
const idempotencyHeader = "idempotency-key";
/** Tells that an answer was made for an earlier request with the same name. */
export const replayedHeader = "idempotent-replayed";

const nameCharactersMax = 255;

/** Returns the name that a client gives its answer, as a digest. Undefined for a request without one. */
export function onceName(headers: IncomingHttpHeaders, keyId: string): ClaimName | undefined {
  const name = headers[idempotencyHeader];
  if (name === undefined || name === "") return undefined;
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

interface OnceParts {
  readonly answerClaims: AnswerClaims;
  readonly clock: Clock;
  readonly timing: Timing;
}

/** Outcomes of a request that leave its answer as it is on its machine. */
const leavingAnswers: ReadonlySet<FaultCode | "ok"> = new Set(["backend_unavailable", "client_closed"]);

/** Time between two looks for the machine of a claimed answer. */
const lookMs = 100;

/** One request for an answer that is made once. */
export class OnceClaim {
  readonly #name: ClaimName;
  readonly #parts: OnceParts;
  #claimed: Claim;
  /** Renews the claim until a machine has the answer. A killed gateway leaves it for a moment only. */
  #renewing: Timer | undefined;

  constructor(name: ClaimName, { owner, digest }: Pick<Claim, "owner" | "digest">, parts: OnceParts) {
    this.#name = name;
    this.#claimed = { owner, digest };
    this.#parts = parts;
  }

  /**
   * Claims the answer. Returns the place of the answer if another request has made it or makes it now, and takes it over from
   * that request. Undefined if this one is to make it. Throws if the name stands for another request.
   */
  async take(signal: AbortSignal): Promise<AnswerPlace | undefined> {
    const { answerClaims, clock, timing } = this.#parts;
    const forMs = timing.onceForMs * 2;
    const untilMs = clock.now() + timing.onceForMs;
    const { owner, digest } = this.#claimed;
    this.#claimed = { owner, digest };
    for (;;) {
      const held = await answerClaims.put(this.#name, this.#claimed, { forMs });
      if (held === undefined) throw refusal("idempotency_keys_used_up", tooManyClaims);
      if (held.owner === owner) {
        this.#renewing = clock.every(timing.onceForMs, () => void this.#hold(forMs).catch(() => undefined));
        return undefined;
      }
      if (held.digest !== digest) throw refusal("idempotency_key_reused", otherRequest);
      const { machine, job } = held;
      if (machine !== undefined && job !== undefined) {
        await this.placed({ machine, job }, held.owner);
        return { machine, job, event: 0 };
      }
      if (clock.now() > untilMs) throw refusal("idempotency_key_in_use", stillClaimed);
      await sleep(clock, lookMs, signal);
    }
  }

  /** Notes the machine that makes the answer, which ends in time and is kept for a while. */
  async placed({ machine, job }: Pick<AnswerPlace, "machine" | "job">, from?: string): Promise<void> {
    const { jobTotalMs, resumableForMs } = this.#parts.timing;
    this.#renewing?.cancel();
    this.#claimed = { ...this.#claimed, machine, job };
    await this.#hold(jobTotalMs + resumableForMs, from);
  }

  /** Keeps the name for as long as machines keep a made answer. */
  async made(): Promise<void> {
    this.#renewing?.cancel();
    await this.#hold(this.#parts.timing.resumableForMs);
  }

  /** True if a machine has the answer, and goes on with it or keeps it after such an outcome of this request. */
  outlasts(outcome: FaultCode | "ok" | undefined): boolean {
    return this.#claimed.machine !== undefined && outcome !== undefined && leavingAnswers.has(outcome);
  }

  /** Frees the name of an answer that was not made, or is kept no more: the next request makes it anew. */
  async release(): Promise<void> {
    this.#renewing?.cancel();
    await this.#hold(0);
  }

  async #hold(forMs: number, from = this.#claimed.owner): Promise<void> {
    await this.#parts.answerClaims.put(this.#name, this.#claimed, { from, forMs });
  }
}

const otherRequest =
  "The 'Idempotency-Key' stands for another request of this key, with another body. Send a new one for it.";
const stillClaimed =
  "A request with this 'Idempotency-Key' is under way, and no machine has taken it yet. Ask again in a moment.";
const tooManyClaims = `This key has ${claimsPerKeyMax} answers with an 'Idempotency-Key' that are under way or kept (claimsPerKeyMax). Ask again in a moment, or without that header.`;

function refusal(code: FaultCode, message: string): Fault {
  return new Fault(code, { message, param: "Idempotency-Key" });
}
