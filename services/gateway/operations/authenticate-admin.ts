import { Fault } from "#shared/fault/fault.ts";
import { issuersOf } from "#shared/keys/admin-lineage.ts";
import { checkKey } from "#shared/keys/check-key.ts";
import type { KeyVerdict } from "#shared/keys/judge-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import { parseKeyToken, type KeyToken } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/peppers.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { BadKeys } from "../access/bad-keys.ts";
import { bearerText } from "../access/bearer-text.ts";
import { authUnavailable, validKey } from "../access/judged-key.ts";

export interface AdminProof {
  readonly keys: Pick<KeyStore, "find">;
  readonly peppers: Peppers;
  readonly badKeys: BadKeys;
  readonly clock: Pick<Clock, "wall">;
}

/**
 * Returns the admin or viewer key that the Authorization header carries. Reads the store on every request, so that a
 * revoked key stops working at once. A key that an admin key issued depends on its issuers: it is refused while any of
 * them is disabled or revoked, even where the revocation did not reach its own record.
 */
export async function authenticateAdmin(
  sent: { readonly authorization: string | undefined; readonly address: string },
  proof: AdminProof,
): Promise<KeyRecord> {
  const text = bearerText(sent.authorization);
  if (text === undefined) {
    throw new Fault("key_invalid", {
      message: "No admin key was sent. Send it as a header: Authorization: Bearer trunkline_admin_…",
    });
  }
  const parsed = parseKeyToken(text);
  if (parsed.outcome !== "parsed") return validKey({ outcome: "invalid" });
  const { token } = parsed;
  const ask = (): Promise<KeyVerdict> => verdictOn(token, proof);
  // Admin keys never wait behind wrong keys: an operator who is locked out of the operations port cannot stop an
  // attack.
  const record = validKey(await (token.kind === "model" ? proof.badKeys.ask(sent.address, ask) : ask()));
  if (record.kind !== "model") return record;
  throw new Fault("insufficient_permissions", {
    message: "This API key calls models. Managing Trunkline takes an admin key.",
  });
}

async function verdictOn(token: KeyToken, { keys, peppers, clock }: AdminProof): Promise<KeyVerdict> {
  try {
    const verdict = await checkKey({ token, keys, peppers, nowMs: clock.wall() });
    if (verdict.outcome !== "valid") return verdict;
    const issuers = await issuersOf(verdict.proven.record, keys);
    if (issuers.some(({ revokedAt }) => revokedAt !== undefined)) return { outcome: "invalid" };
    return issuers.some(({ disabledAt }) => disabledAt !== undefined) ? { outcome: "disabled" } : verdict;
  } catch (error) {
    const { internal, message } = Fault.from(error);
    throw authUnavailable(internal ?? message);
  }
}
