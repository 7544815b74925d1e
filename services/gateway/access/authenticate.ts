import { Fault } from "#shared/fault/fault.ts";
import type { KeyVerdict } from "#shared/keys/judge-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { parseKeyToken, type ParsedKeyToken } from "#shared/keys/key-token.ts";
import type { BadKeys } from "./bad-keys.ts";
import { bearerText } from "./bearer-text.ts";
import { validKey } from "./judged-key.ts";
import type { KnownKeys } from "./known-keys.ts";

/**
 * Returns the record of a request's key if its verdict is known without the store; otherwise undefined. Throws when the
 * known key is no longer valid.
 */
export function recallKey(parsed: ParsedKeyToken | undefined, knownKeys: KnownKeys): KeyRecord | undefined {
  const known = parsed?.outcome === "parsed" ? knownKeys.recall(parsed.token) : undefined;
  return known === undefined ? undefined : validKey(known);
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
