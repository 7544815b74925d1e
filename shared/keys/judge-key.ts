import { randomBytes, timingSafeEqual } from "node:crypto";
import { keyState, type FoundKey, type KeyRecord } from "./key-record.ts";
import type { KeyDigest, PepperFingerprint } from "./pepper.ts";

/** A record whose holder has presented a valid secret, and the end of that secret's validity. */
export interface ProvenKey {
  readonly record: KeyRecord;
  /** Milliseconds since 1970; `Infinity` for the current secret. */
  readonly secretUntil: number;
}

export type KeyVerdict =
  | { readonly outcome: "valid"; readonly proven: ProvenKey }
  | { readonly outcome: "expired" }
  /** The key is still valid with another secret. The grace period of this secret is over. */
  | { readonly outcome: "replaced" }
  | { readonly outcome: "disabled" }
  | { readonly outcome: "invalid" }
  /** The kind in the record differs from the kind in the token. */
  | { readonly outcome: "altered" }
  /** The stored digests were made with a pepper that this process does not have. */
  | { readonly outcome: "unjudged" };

/**
 * Returns the verdict on a key. Only the holder of a correct secret learns more than that the key is invalid.
 * Comparisons take the same time for every wrong digest. An unknown key causes a comparison too.
 */
export function judgeKey(key: {
  readonly found: FoundKey;
  /** The possible digests of the key that was sent: one for each pepper that this process has. */
  readonly digests: readonly KeyDigest[];
  readonly knowsPepper: (fingerprint: PepperFingerprint) => boolean;
  readonly nowMs: number;
}): KeyVerdict {
  const { found, nowMs } = key;
  const offered = key.digests.map((digest) => Buffer.from(digest, "hex"));
  const isRight = (kept: Buffer): boolean =>
    offered.map((digest) => timingSafeEqual(kept, digest)).some((equal) => equal);
  switch (found.kind) {
    case "absent":
      isRight(digestOfNobody);
      return { outcome: "invalid" };
    case "tombstone": {
      const { digest, expiresAt } = found.tombstone;
      return { outcome: isRight(Buffer.from(digest, "hex")) && nowMs >= expiresAt ? "expired" : "invalid" };
    }
    case "record": {
      const { record } = found;
      const secrets = [
        { digest: record.digest, pepper: record.pepper, validUntil: Infinity },
        ...(record.replaced ?? []),
      ];
      const right = secrets.filter(({ digest }) => isRight(Buffer.from(digest, "hex")));
      const [secret] = right;
      if (secret !== undefined) return judgeProven({ record, secretUntil: secret.validUntil }, nowMs);
      const good = secrets.filter(({ validUntil }) => nowMs < validUntil);
      return { outcome: good.every(({ pepper }) => key.knowsPepper(pepper)) ? "invalid" : "unjudged" };
    }
  }
}

/** Judges a key whose secret was proved before. Only its state and the time remain to be checked. */
export function judgeProven(proven: ProvenKey, nowMs: number): KeyVerdict {
  const state = keyState(proven.record, nowMs);
  if (state === "revoked") return { outcome: "invalid" };
  if (state !== "valid") return { outcome: state };
  return nowMs < proven.secretUntil ? { outcome: "valid", proven } : { outcome: "replaced" };
}

const digestOfNobody = randomBytes(32);
