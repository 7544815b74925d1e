import { Fault } from "#shared/fault/fault.ts";
import { checkKey } from "#shared/keys/check-key.ts";
import type { KeyVerdict } from "#shared/keys/judge-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import { parseKeyToken } from "#shared/keys/key-token.ts";
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
 * From the Authorization header to the admin key that sent it. The store is asked every time: whoever is no longer to
 * manage keys does not for another second.
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
  proof.badKeys.insistOnFew(sent.address);
  const verdict = await verdictOn(text, proof);
  if (verdict.outcome === "invalid") proof.badKeys.note(sent.address);
  const record = validKey(verdict);
  if (record.kind === "admin") return record;
  throw new Fault("insufficient_permissions", {
    message: "This API key calls models. Managing Trunkline takes an admin key.",
  });
}

async function verdictOn(text: string, { keys, peppers, clock }: AdminProof): Promise<KeyVerdict> {
  const parsed = parseKeyToken(text);
  if (parsed.outcome !== "parsed") return { outcome: "invalid" };
  try {
    return await checkKey({ token: parsed.token, keys, peppers, nowMs: clock.wall() });
  } catch (error) {
    const { internal, message } = Fault.from(error);
    throw authUnavailable(internal ?? message);
  }
}
