import type { FaultPayload } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";

/** A job that moved away from a gateway: the request that had it there, and the tokens up to which that gateway counts. */
type LostJob = Pick<FaultPayload, "movedFrom" | "countedTokens">;

/** The tokens that a gateway counts of an answer that it has whole. */
const allTokens = 2 ** 31 - 1;

/** The gateways that follow an answer, one after the other, and the tokens of it that each of them counts. */
export class Followers {
  /** The gateway that submitted the job, or attached to it last. */
  owner: string;
  /** The time since which no gateway waits for the job, since its owner is gone or has all of it. */
  leftAtMs: number | undefined;
  /** The tokens that the gateways before the owner count. */
  countedTokens = 0;
  /** The tokens that the owner says that it counts. Undefined for an older gateway, which counts what was sent to it. */
  #saidTokens: number | undefined;
  /** The request by which a client resumed the answer last, and how often that was. */
  #resumedBy: string | undefined;
  #resumes = 0;
  /** The gateways that the job moved away from. They have lost it for good, unless a new request resumes it there. */
  readonly #lostBy = new Map<string, LostJob>();

  constructor(owner: string) {
    this.owner = owner;
  }

  /** The gateway that waits for the job. */
  get waiting(): string | undefined {
    return this.leftAtMs === undefined ? this.owner : undefined;
  }

  /** Returns the answer as a gateway lost it. Undefined if it has not, or if a new request of it resumes the answer. */
  lostBy(gateway: string, request: string | undefined): LostJob | undefined {
    const lost = this.#lostBy.get(gateway);
    return request === undefined || request === lost?.movedFrom ? lost : undefined;
  }

  /** Notes how far a gateway counts the answer, as it says several times a second. */
  counted(gateway: string, tokens: number): void {
    if (gateway === this.owner) this.#saidTokens = tokens;
  }

  /** Notes that the owner has all of the answer. */
  countedAll(): void {
    this.#saidTokens = allTokens;
  }

  /** Notes that the owner is gone. It counts as far as it has said. */
  leave(nowMs: number, sentTokens: number): void {
    this.leftAtMs = nowMs;
    this.#saidTokens = this.#countedSoFar(sentTokens);
  }

  attach(gateway: string): void {
    this.owner = gateway;
    this.leftAtMs = undefined;
  }

  mayResume(request: string): boolean {
    return this.#resumes < limits.resumesMax || request === this.#resumedBy;
  }

  /**
   * Gives the answer to a request of this gateway, and returns the gateway that loses it. The gateway before counts as far as
   * it has said. The same gateway tells what it counts (`countedHere`), since it drops frames that are still on their way to
   * the request before.
   */
  resume(
    request: string,
    { gateway, countedHere, sentTokens }: { gateway: string; countedHere: number | undefined; sentTokens: number },
  ): string | undefined {
    // An attach that comes again moves nothing.
    if (request === this.#resumedBy) return undefined;
    const { owner } = this;
    const movedFrom = this.#resumedBy;
    this.countedTokens = (gateway === owner ? countedHere : undefined) ?? this.#countedSoFar(sentTokens);
    this.#saidTokens = undefined;
    this.#resumedBy = request;
    this.#resumes += 1;
    this.#lostBy.delete(gateway);
    if (gateway === owner) return undefined;
    this.#lostBy.set(owner, { movedFrom, countedTokens: this.countedTokens });
    return owner;
  }

  #countedSoFar(sentTokens: number): number {
    return Math.max(this.countedTokens, this.#saidTokens ?? sentTokens);
  }
}
