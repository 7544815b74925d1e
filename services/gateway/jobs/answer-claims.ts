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

/**
 * The names of answers that are being made, or were made lately, for all gateways of a site. Methods fail with a Fault
 * `backend_unavailable` while the store is unavailable.
 */
export interface AnswerClaims {
  /** Claims a name. Returns the claim that stands: this one if the name was free. Undefined if the key has too many. */
  take(name: ClaimName, claimed: Claim, forMs: number): Promise<Claim | undefined>;
  /** Replaces the claim of this owner by another one, which ends after `forMs`. */
  renew(name: ClaimName, owner: string, claimed: Claim, forMs: number): Promise<void>;
  /** Frees a name, if this request holds it. */
  release(name: ClaimName, owner: string): Promise<void>;
}

/** The claims of the only gateway of a site. Its answers end with its process, and so do these. */
export class OwnClaims implements AnswerClaims {
  readonly #clock: Pick<Clock, "now">;
  readonly #byKey = new Map<string, Map<string, { readonly claimed: Claim; readonly untilMs: number }>>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  async take(name: ClaimName, claimed: Claim, forMs: number): Promise<Claim | undefined> {
    const held = this.#find(name);
    if (held !== undefined) return held;
    const ofKey = this.#byKey.getOrInsertComputed(name.keyId, () => new Map());
    if (ofKey.size >= claimsPerKeyMax) return undefined;
    ofKey.set(name.name, { claimed, untilMs: this.#clock.now() + forMs });
    return claimed;
  }

  async renew(name: ClaimName, owner: string, claimed: Claim, forMs: number): Promise<void> {
    if (this.#find(name)?.owner !== owner) return;
    this.#byKey.get(name.keyId)?.set(name.name, { claimed, untilMs: this.#clock.now() + forMs });
  }

  async release(name: ClaimName, owner: string): Promise<void> {
    if (this.#find(name)?.owner === owner) this.#byKey.get(name.keyId)?.delete(name.name);
  }

  #find({ keyId, name }: ClaimName): Claim | undefined {
    const ofKey = this.#byKey.get(keyId);
    const nowMs = this.#clock.now();
    for (const [each, { untilMs }] of ofKey ?? []) if (untilMs <= nowMs) ofKey?.delete(each);
    if (ofKey?.size === 0) this.#byKey.delete(keyId);
    return ofKey?.get(name)?.claimed;
  }
}
