import { Fault } from "#shared/fault/fault.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { parseKeyToken, type ParsedKeyToken } from "#shared/keys/key-token.ts";
import type { BadKeys } from "./bad-keys.ts";
import { bearerText } from "./bearer-text.ts";
import { validKey } from "./judged-key.ts";
import type { KnownKeys } from "./known-keys.ts";

/** The key that sent a request, where it is known and need not be asked for. Throws when it is known to be good no more. */
export function recallKey(parsed: ParsedKeyToken | undefined, knownKeys: KnownKeys): KeyRecord | undefined {
  const known = parsed?.outcome === "parsed" ? knownKeys.recall(parsed.token) : undefined;
  return known === undefined ? undefined : validKey(known);
}

/** From the Authorization header, and nothing else of a request, to the key that sent it. */
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
  const known = parsed.outcome === "parsed" ? knownKeys.recall(parsed.token) : undefined;
  if (known !== undefined) return validKey(known);

  if (parsed.outcome !== "parsed" || !knownKeys.has(parsed.token)) badKeys.insistOnFew(sent.address);
  if (parsed.outcome === "parsed" && parsed.token.kind === "admin") {
    throw new Fault("key_invalid", { message: "An admin key manages keys and calls no models. Send an API key." });
  }
  const verdict = parsed.outcome === "parsed" ? await knownKeys.ask(parsed.token) : ({ outcome: "invalid" } as const);
  if (verdict.outcome === "invalid") badKeys.note(sent.address);
  return validKey(verdict);
}
