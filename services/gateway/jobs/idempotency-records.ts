import { z } from "zod";
import type { Clock } from "#shared/process/clock.ts";

/** The name by which a client asks for one answer, however often it repeats its request: unique for its key. */
export interface IdempotencyName {
  readonly keyId: string;
  readonly name: string;
}

/** A name, with the request that makes its answer. */
export const idempotencyRecord = z.object({
  /** The request that makes it. */
  owner: z.string(),
  /** The digest of its body: another body under the same name is refused. */
  digest: z.string(),
  /** The machine and the job that make the answer, once a machine has it. */
  machine: z.string().optional(),
  job: z.string().optional(),
});
export type IdempotencyRecord = z.infer<typeof idempotencyRecord>;

/** Bounds the names of one key that stand at once. */
export const idempotencyKeysMax = 1_000;

/** The record that is to be replaced, and the time that the new one lasts. */
export interface Replacement {
  /** The request whose record is replaced. Undefined takes a name that is free. */
  readonly from?: string | undefined;
  /** 0 frees the name. */
  readonly forMs: number;
}

/** The names of answers that are being made, or were made lately, for all gateways of a site. */
export interface IdempotencyRecords {
  /**
   * Puts a record at a name, if the name is held by `from`. Returns the record that stands then: another one if it is not.
   * Undefined if none stands, because it ended or the key has too many. Fails with a Fault `backend_unavailable` while the
   * store is unavailable.
   */
  put(name: IdempotencyName, record: IdempotencyRecord, replaced: Replacement): Promise<IdempotencyRecord | undefined>;
}

/** The idempotency records of the only gateway of a site. Its answers end with its process, and so do these. */
export class OwnIdempotencyRecords implements IdempotencyRecords {
  readonly #clock: Pick<Clock, "now">;
  readonly #byKey = new Map<string, Map<string, { readonly record: IdempotencyRecord; readonly untilMs: number }>>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  async put(
    { keyId, name }: IdempotencyName,
    record: IdempotencyRecord,
    { from, forMs }: Replacement,
  ): Promise<IdempotencyRecord | undefined> {
    const nowMs = this.#clock.now();
    const ofKey = this.#byKey.getOrInsertComputed(keyId, () => new Map());
    for (const [each, { untilMs }] of ofKey) if (untilMs <= nowMs) ofKey.delete(each);
    const held = ofKey.get(name)?.record;
    if (held?.owner !== from) return held;
    if (held === undefined && ofKey.size >= idempotencyKeysMax) return undefined;
    if (forMs > 0) ofKey.set(name, { record, untilMs: nowMs + forMs });
    else ofKey.delete(name);
    if (ofKey.size === 0) this.#byKey.delete(keyId);
    return ofKey.get(name)?.record;
  }
}
