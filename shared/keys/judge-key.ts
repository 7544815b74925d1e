import { randomBytes, timingSafeEqual } from "node:crypto";
import { keyState, type FoundKey, type KeyRecord } from "./key-record.ts";
import type { KeyDigest, PepperFingerprint } from "./pepper.ts";

/** A record whose holder has shown a right secret, and until when that secret is good. */
export interface ProvenKey {
  readonly record: KeyRecord;
  /** Later than any expiry for the current secret. */
  readonly secretUntil: number;
}

export type KeyVerdict =
  | { readonly outcome: "valid"; readonly proven: ProvenKey }
  | { readonly outcome: "expired" }
  /** Its time goes on with another secret, and this one's grace is over. */
  | { readonly outcome: "replaced" }
  | { readonly outcome: "disabled" }
  | { readonly outcome: "invalid" }
  /** The digests that are kept of it were made with a pepper that this process does not have. */
  | { readonly outcome: "unjudged" };

/**
 * Says what a key is worth. Only who holds a right secret is told more than that it is invalid. Comparisons take the
 * same time for every wrong digest, and one is made for unknown keys too.
 */
export function judgeKey(key: {
  readonly found: FoundKey;
  /** What the digest of the key that was sent may be: one for each pepper that this process has. */
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

/** The same for a key whose secret was proved before: what is left to judge is its state and the time. */
export function judgeProven(proven: ProvenKey, nowMs: number): KeyVerdict {
  const state = keyState(proven.record, nowMs);
  if (state === "revoked") return { outcome: "invalid" };
  if (state !== "valid") return { outcome: state };
  return nowMs < proven.secretUntil ? { outcome: "valid", proven } : { outcome: "replaced" };
}

const digestOfNobody = randomBytes(32);
