import { Fault } from "#shared/fault/fault.ts";
import { checkKey } from "#shared/keys/check-key.ts";
import type { KeyVerdict } from "#shared/keys/judge-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import { parseKeyToken, type KeyToken } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/peppers.ts";
import type { Clock } from "#shared/process/clock.ts";

export interface AdminProof {
  readonly keys: Pick<KeyStore, "find">;
  readonly peppers: Peppers;
  readonly clock: Pick<Clock, "wall">;
}

const bearer = /^bearer +(\S+)$/i;

/**
 * From the Authorization header to the admin key that sent it. The store is asked every time: whoever is no longer to
 * manage keys does not for another second.
 */
export async function authenticateAdmin(authorization: string | undefined, proof: AdminProof): Promise<KeyRecord> {
  const text = bearer.exec(authorization ?? "")?.[1];
  if (text === undefined) {
    throw new Fault("key_invalid", {
      message: "No admin key was sent. Send it as a header: Authorization: Bearer trunkline_admin_…",
    });
  }
  const parsed = parseKeyToken(text);
  const record = recordOf(parsed.outcome === "parsed" ? await verdictOn(parsed.token, proof) : { outcome: "invalid" });
  if (record.kind === "admin") return record;
  throw new Fault("insufficient_permissions", {
    message: "This API key calls models. Managing keys takes an admin key.",
  });
}

async function verdictOn(token: KeyToken, { keys, peppers, clock }: AdminProof): Promise<KeyVerdict> {
  try {
    return await checkKey({ token, keys, peppers, nowMs: clock.wall() });
  } catch (error) {
    const { internal, message } = Fault.from(error);
    throw authUnavailable(internal ?? message);
  }
}

function recordOf(verdict: KeyVerdict): KeyRecord {
  switch (verdict.outcome) {
    case "valid":
      return verdict.proven.record;
    case "expired":
      throw new Fault("key_expired", { message: "This key has expired. Another admin key can extend it." });
    case "replaced":
      throw new Fault("key_expired", { message: "This key was replaced by a new one, and its time of grace is over." });
    case "disabled":
      throw new Fault("key_invalid", { message: "This key is disabled for now. Another admin key can enable it." });
    case "invalid":
      throw new Fault("key_invalid", {
        message: "Incorrect admin key provided: it does not exist or has been revoked.",
      });
    case "unjudged":
      throw authUnavailable("the key is under a pepper that this gateway does not have");
  }
}

/** Never a 401: people and programs throw a key away that is called invalid. */
function authUnavailable(internal: string): Fault {
  return new Fault("auth_unavailable", {
    message: "Keys cannot be checked just now. Send the request again in a moment.",
    internal,
  });
}
