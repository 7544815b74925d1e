import type { KeyDependencies } from "#shared/records/issue-key.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import { systemClock } from "#shared/process/clock.ts";

export const pepper = pepperText.parse("a pepper that is long enough to be one");
export const peppers = new Peppers(pepper);

/** What one process of an operator's has to change keys with. */
export function meansOf(keys: KeyStore): KeyDependencies {
  return { keys, peppers, clock: systemClock, actor: { by: "the operator" } };
}
