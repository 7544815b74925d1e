import { Fault } from "#shared/fault/fault.ts";
import type { KeyVerdict } from "#shared/keys/judge-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import { parseKeyToken } from "#shared/keys/key-token.ts";
import type { BadKeys } from "./bad-keys.ts";
import type { KnownKeys } from "./known-keys.ts";

const bearer = /^bearer +(\S+)$/i;

/** From the Authorization header, and nothing else of a request, to the key that sent it. */
export async function authenticate(
  sent: { readonly authorization: string | undefined; readonly address: string },
  means: { readonly knownKeys: KnownKeys; readonly badKeys: BadKeys },
): Promise<KeyRecord> {
  const { knownKeys, badKeys } = means;
  const text = bearer.exec(sent.authorization ?? "")?.[1];
  if (text === undefined) {
    throw new Fault("key_invalid", {
      message: "No API key was sent. Send it as a header: Authorization: Bearer trunkline_…",
    });
  }
  const parsed = parseKeyToken(text);
  const known = parsed.outcome === "parsed" ? knownKeys.recall(parsed.token) : undefined;
  if (known !== undefined) return recordOf(known);

  const waitMs = badKeys.waitMs(sent.address);
  if (waitMs > 0) {
    throw new Fault("rate_limit_bad_keys", {
      message: "Too many wrong API keys came from this address (badKeysPerMinuteMax). Try again in a moment.",
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)),
    });
  }
  if (parsed.outcome === "parsed" && parsed.token.kind === "admin") {
    throw new Fault("key_invalid", { message: "An admin key manages keys and calls no models. Send an API key." });
  }
  const verdict = parsed.outcome === "parsed" ? await knownKeys.ask(parsed.token) : ({ outcome: "invalid" } as const);
  if (verdict.outcome === "invalid") badKeys.note(sent.address);
  return recordOf(verdict);
}

function recordOf(verdict: KeyVerdict): KeyRecord {
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
    case "unjudged":
      throw new Fault("key_invalid", { message: "Incorrect API key provided: it does not exist or has been revoked." });
  }
}
