import { Fault } from "#shared/fault/fault.ts";
import type { KeyVerdict } from "#shared/keys/check-key.ts";
import { allows, type KeyRecord } from "#shared/keys/key-record.ts";
import { parseKeyToken } from "#shared/keys/key-token.ts";
import { type Model, aliasedId } from "#shared/model/model.ts";
import type { BadKeys } from "./bad-keys.ts";
import type { KnownKeys } from "./known-keys.ts";

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
    message: "The key store is unavailable, so the key cannot be checked. Try again in a moment.",
    internal,
  });
}

const bearer = /^bearer (\S+)$/i;

/** Returns the token of a Bearer Authorization header; undefined for any other header. */
export function bearerText(authorization: string | undefined): string | undefined {
  return bearer.exec(authorization ?? "")?.[1];
}

/** Finds the key of a request by its Authorization header alone. The address only bounds the lookups of wrong keys. */
export async function authenticate(
  sent: { readonly authorization: string | undefined; readonly address: string },
  means: { readonly knownKeys: KnownKeys; readonly badKeys: BadKeys },
): Promise<KeyRecord> {
  const { knownKeys, badKeys } = means;
  const text = bearerText(sent.authorization);
  if (text === undefined) {
    throw new Fault("key_invalid", {
      message: "No API key was sent. Send it as a header: Authorization: Bearer trunkline_…",
    });
  }
  const parsed = parseKeyToken(text);
  // A malformed key costs no lookup in the store, and so needs no limit.
  if (parsed.outcome !== "parsed") return validKey({ outcome: "invalid" });
  const { token } = parsed;
  const known = knownKeys.recall(token);
  if (known !== undefined) return validKey(known);

  if (token.kind !== "model") {
    const kind = token.kind === "admin" ? "An admin key" : "A viewer key";
    throw new Fault("key_invalid", { message: `${kind} calls no models. Send an API key.` });
  }
  const ask = (): Promise<KeyVerdict> => knownKeys.ask(token);
  const verdict = await (knownKeys.has(token) ? ask() : badKeys.ask(sent.address, ask));
  return validKey(verdict);
}

/** True if the key's scopes allow the model. Any other model does not exist for that key. */
export function mayUse(key: KeyRecord, modelId: string): boolean {
  return allows(key.scopes, modelId);
}

/** True if `modelId` must not stand for its alias here, because the key may not use the alias. */
export function needsExactId(key: KeyRecord, modelId: string): boolean {
  const other = aliasedId(modelId);
  return other !== modelId && !mayUse(key, other);
}

export function visibleTo(key: KeyRecord, models: readonly Model[]): Model[] {
  return models.filter(({ id }) => mayUse(key, id));
}
