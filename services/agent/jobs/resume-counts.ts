import type { FaultPayload, Resumable, ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";

/** A job that moved away from a gateway: the request that had it there, and the tokens up to which that gateway counts. */
type LostJob = Pick<FaultPayload, "movedFrom" | "countedTokens">;

/** The tokens that a gateway counts of an answer that it has whole. */
const allTokens = 2 ** 31 - 1;

/** The tokens that gateways count of an answer that its client may resume: each of them from where the one before ends. */
export class ResumeCounts {
  readonly #resumable: Resumable;
  /** The tokens that the gateways before the owner count. */
  #countedTokens = 0;
  /** The tokens that the owner says that it counts. Undefined for an older gateway, which counts what was sent to it. */
  #saidTokens: number | undefined;
  /** The request by which a client resumed the answer last, and how often that was. */
  #resumedBy: string | undefined;
  #resumes = 0;
  /** The gateways that the job moved away from. They have lost it for good, unless a new request resumes it there. */
  readonly #lostBy = new Map<string, LostJob>();

  constructor(resumable: Resumable) {
    this.#resumable = resumable;
  }

  /** Returns the facts of the answer for the gateway at which it is resumed. */
  told(model: string): ResumedAnswer {
    return { ...this.#resumable, model, countedTokens: this.#countedTokens };
  }

  /** Returns the answer as a gateway lost it. Undefined if it has not, or if a new request of it resumes the answer. */
  lostBy(gateway: string, request: string | undefined): LostJob | undefined {
    const lost = this.#lostBy.get(gateway);
    return request === undefined || request === lost?.movedFrom ? lost : undefined;
  }

  /** Notes how far the owner counts the answer, as it says several times a second. */
  said(tokens = allTokens): void {
    this.#saidTokens = tokens;
  }

  /** Notes that the owner is gone. It counts as far as it has said. */
  ownerLeft(sentTokens: number): void {
    this.#saidTokens = this.#soFar(sentTokens);
  }

  mayResume(request: string): boolean {
    return this.#resumes < limits.resumesMax || request === this.#resumedBy;
  }

  /**
   * Gives the answer to a request of a gateway, and returns true if its owner loses it. The owner counts as far as it has said.
   * The same gateway tells what it counts (`countedHere`), since it drops frames that are still on their way to the request
   * before.
   */
  resume(request: string, move: ResumeMove): boolean {
    const { owner, gateway, countedHere, sentTokens } = move;
    // An attach that comes again moves nothing.
    if (request === this.#resumedBy) return false;
    const movedFrom = this.#resumedBy;
    this.#countedTokens = (gateway === owner ? countedHere : undefined) ?? this.#soFar(sentTokens);
    this.#saidTokens = undefined;
    this.#resumedBy = request;
    this.#resumes += 1;
    this.#lostBy.delete(gateway);
    if (gateway !== owner) this.#lostBy.set(owner, { movedFrom, countedTokens: this.#countedTokens });
    return gateway !== owner;
  }

  #soFar(sentTokens: number): number {
    return Math.max(this.#countedTokens, this.#saidTokens ?? sentTokens);
  }
}

interface ResumeMove {
  readonly owner: string;
  readonly gateway: string;
  readonly countedHere: number | undefined;
  readonly sentTokens: number;
}
