import { Fault } from "#shared/fault/fault.ts";
import type { KeyVerdict } from "#shared/keys/judge-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";

/** Returns the record of a valid key; throws the fault for any other verdict. */
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
    case "altered":
      throw new Fault("key_invalid", {
        message: "The record of this key was altered in the store. Ask the operator for another key.",
        internal: "the kind of the record is not the kind of the key, so it was altered in the store",
      });
    case "unjudged":
      throw authUnavailable("the key is under a pepper that this gateway does not have");
  }
}

/** Returns `auth_unavailable`, never a 401: people and programs throw a key away that is called invalid. */
export function authUnavailable(internal: string): Fault {
  return new Fault("auth_unavailable", {
    message: "Keys cannot be checked just now. Send the request again in a moment.",
    internal,
  });
}
