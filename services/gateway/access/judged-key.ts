import { Fault } from "#shared/fault/fault.ts";
import type { KeyVerdict } from "#shared/keys/judge-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";

/** The record of a key that is valid; what else it is worth, its holder is told. */
export function validKey(verdict: KeyVerdict): KeyRecord {
  switch (verdict.outcome) {
    case "valid":
      return verdict.proven.record;
    case "expired":
      throw new Fault("key_expired", { message: "This API key has expired. Ask whoever issued it for a new one." });
    case "replaced":
      throw new Fault("key_expired", {
        message: "This API key was replaced by a new one, and its time of grace is over. Use the new one.",
      });
    case "disabled":
      throw new Fault("key_invalid", { message: "This API key is disabled for now. Ask whoever issued it." });
    case "invalid":
      throw new Fault("key_invalid", { message: "Incorrect API key provided: it does not exist or has been revoked." });
    case "unjudged":
      throw authUnavailable("the key is under a pepper that this gateway does not have");
  }
}

/** Never a 401: people and programs throw a key away that is called invalid. */
export function authUnavailable(internal: string): Fault {
  return new Fault("auth_unavailable", {
    message: "Keys cannot be checked just now. Send the request again in a moment.",
    internal,
  });
}
