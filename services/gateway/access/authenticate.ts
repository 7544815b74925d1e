import { Fault } from "#shared/fault/fault.ts";
import { checkKey } from "#shared/keys/check-key.ts";
import type { KeyRecord } from "#shared/keys/key-record.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { Pepper } from "#shared/keys/pepper.ts";
import type { Clock } from "#shared/process/clock.ts";

export interface KeyCheck {
  readonly keys: KeyStore;
  readonly pepper: Pepper;
  readonly clock: Clock;
}

const bearer = /^bearer +(\S+)$/i;

/** From the Authorization header, and nothing else of a request, to the key that sent it. */
export async function authenticate(authorization: string | undefined, check: KeyCheck): Promise<KeyRecord> {
  const text = bearer.exec(authorization ?? "")?.[1];
  if (text === undefined) {
    throw new Fault("key_invalid", {
      message: "No API key was sent. Send it as a header: Authorization: Bearer trunkline_…",
    });
  }
  const { keys, pepper, clock } = check;
  const verdict = await checkKey({ text, keys, pepper, nowMs: clock.wall() });
  switch (verdict.outcome) {
    case "valid":
      return verdict.record;
    case "expired":
      throw new Fault("key_expired", { message: "This API key has expired. Ask whoever issued it for a new one." });
    case "invalid":
      throw new Fault("key_invalid", { message: "Incorrect API key provided: it does not exist or has been revoked." });
  }
}
