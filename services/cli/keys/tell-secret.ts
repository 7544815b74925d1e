import type { IssuedKey } from "#shared/keys/issue-key.ts";
import { showKey } from "#shared/keys/shown-key.ts";
import type { GivenJson } from "../json-option.ts";
import type { Surroundings } from "../surroundings.ts";
import { keyFields } from "./key-fields.ts";

/** Shows a new key with its secret. The secret cannot be shown again. */
export function tellSecret(
  { token, record }: IssuedKey,
  { json }: GivenJson,
  { stdout, stderr, clock }: Surroundings,
): void {
  const nowMs = clock.wall();
  const { id, ...shown } = showKey(record, nowMs);
  const key = token.reveal();
  stdout.write(json ? `${JSON.stringify({ id, key, ...shown })}\n` : keyFields({ id, ...shown }, { nowMs, key }));
  stderr.write("Keep the key now: it cannot be shown again.\n");
}
