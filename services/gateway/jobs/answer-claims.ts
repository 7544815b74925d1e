import { z } from "zod";
import type { Clock } from "#shared/process/clock.ts";

/** The name by which a client asks for one answer, however often it repeats its request: unique for its key. */
export interface ClaimName {
  readonly keyId: string;
  readonly name: string;
}

/** A request that makes the answer of a name. */
export const claim = z.object({
  /** The request that makes it. */
  owner: z.string(),
  /** The digest of its body: another body under the same name is refused. */
  digest: z.string(),
  /** The machine and the job that make the answer, once a machine has it. */
  machine: z.string().optional(),
  job: z.string().optional(),
});
export type Claim = z.infer<typeof claim>;

/** Bounds the names of one key that are claimed at once. */
export const claimsPerKeyMax = 1_000;

/** The claim that is to be replaced, and the time that the new one lasts. */
export interface ClaimHold {
  /** The request whose claim is replaced. Undefined takes a name that is free. */
  readonly from?: string | undefined;
  /** 0 frees the name. */
  readonly forMs: number;
}

/** The names of answers that are being made, or were made lately, for all gateways of a site. */
export interface AnswerClaims {
  /**
   * Puts a claim at a name, if the name is held by `from`. Returns the claim that stands then: another one if it is not.
   * Undefined if none stands, because it ended or the key has too many. Fails with a Fault `backend_unavailable` while the
   * store is unavailable.
   */
  put(name: ClaimName, claimed: Claim, hold: ClaimHold): Promise<Claim | undefined>;
}

/** The claims of the only gateway of a site. Its answers end with its process, and so do these. */
export class OwnClaims implements AnswerClaims {
  readonly #clock: Pick<Clock, "now">;
  readonly #byKey = new Map<string, Map<string, { readonly claimed: Claim; readonly untilMs: number }>>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  async put({ keyId, name }: ClaimName, claimed: Claim, { from, forMs }: ClaimHold): Promise<Claim | undefined> {
    const nowMs = this.#clock.now();
    const ofKey = this.#byKey.getOrInsertComputed(keyId, () => new Map());
    for (const [each, { untilMs }] of ofKey) if (untilMs <= nowMs) ofKey.delete(each);
    const held = ofKey.get(name)?.claimed;
    if (held?.owner !== from) return held;
    if (held === undefined && ofKey.size >= claimsPerKeyMax) return undefined;
    if (forMs > 0) ofKey.set(name, { claimed, untilMs: nowMs + forMs });
    else ofKey.delete(name);
    if (ofKey.size === 0) this.#byKey.delete(keyId);
    return ofKey.get(name)?.claimed;
  }
}
