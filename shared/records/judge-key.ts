import { randomBytes, timingSafeEqual } from "node:crypto";
import type { Peppers } from "../keys/pepper.ts";
import type { KeyToken } from "../keys/key-token.ts";
import type { KeyStore } from "./key-store.ts";
import { type FoundKey, judgeProven, type KeyVerdict } from "./key-record.ts";

/**
 * Looks up a key in the store and returns the verdict on it. A store that does not answer causes a Fault, never a
 * verdict.
 */
export async function checkKey(check: {
  readonly token: KeyToken;
  readonly keys: Pick<KeyStore, "find">;
  readonly peppers: Peppers;
  readonly nowMs: number;
}): Promise<KeyVerdict> {
  return judgeToken({ ...check, found: await check.keys.find(check.token.id) });
}

/**
 * Judges a token against its record. Only the holder of a correct secret learns more than that the key is invalid.
 * Comparisons take the same time for every wrong digest. An unknown key causes a comparison too.
 *
 * A digest covers the text of a token, including the prefix that names the kind. A record of another kind was altered by
 * a writer who does not know the pepper. The key is then not accepted.
 */
export function judgeToken(check: {
  readonly found: FoundKey;
  readonly token: KeyToken;
  readonly peppers: Peppers;
  readonly nowMs: number;
}): KeyVerdict {
  const { found, token, peppers, nowMs } = check;
  const offered = peppers.digestsOf(token).map((digest) => Buffer.from(digest, "hex"));
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
      const [secret] = secrets.filter(({ digest }) => isRight(Buffer.from(digest, "hex")));
      if (secret === undefined) {
        const good = secrets.filter(({ validUntil }) => nowMs < validUntil);
        return { outcome: good.every(({ pepper }) => peppers.knows(pepper)) ? "invalid" : "unjudged" };
      }
      const verdict = judgeProven({ record, secretUntil: secret.validUntil }, nowMs);
      return verdict.outcome === "valid" && record.kind !== token.kind ? { outcome: "altered" } : verdict;
    }
  }
}

const digestOfNobody = randomBytes(32);
