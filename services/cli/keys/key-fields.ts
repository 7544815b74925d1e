import type { KeyKind } from "#shared/keys/key-token.ts";
import type { ShownKey } from "#shared/keys/shown-key.ts";
import { countText } from "../text/count.ts";
import { fieldLines } from "../text/field-lines.ts";
import { fromNow } from "../text/from-now.ts";
import { budgetText } from "../text/token-budget.ts";
import { utcTime } from "../text/utc-time.ts";

const kindTexts: Record<KeyKind, string> = {
  model: "model",
  admin: "admin: for the admin API, calls no models",
  viewer: "viewer: only reads the admin API, calls no models",
};

/** Formats all fields of a key, one a line. Includes the key itself only when it was just made. */
export function keyFields(shown: ShownKey, { nowMs, key }: { readonly nowMs: number; readonly key?: string }): string {
  return fieldLines([
    ...(key === undefined ? [] : [["key", key] as const]),
    ["id", shown.id],
    ["name", shown.name],
    ["kind", kindTexts[shown.kind]],
    ["state", shown.state],
    ...(shown.kind === "model" ? termFields(shown) : []),
    ...(shown.issued_by === undefined ? [] : [["issued by", `admin ${shown.issued_by}`] as const]),
    ["created", utcTime(shown.created_at)],
    ["expires", `${utcTime(shown.expires_at)} (${fromNow(Date.parse(shown.expires_at), nowMs)})`],
    ...(shown.disabled_at === null ? [] : [["disabled", utcTime(shown.disabled_at)] as const]),
    ...(shown.revoked_at === null ? [] : [["revoked", utcTime(shown.revoked_at)] as const]),
    ...shown.old_secrets_valid_until.map(
      (until) => ["old secret", `good until ${oldSecretEnd(until, shown)}`] as const,
    ),
  ]);
}

/** Returns the time when an old secret expires: never later than its key. */
function oldSecretEnd(validUntil: string, { expires_at: expiresAt }: ShownKey): string {
  return utcTime(Math.min(Date.parse(validUntil), Date.parse(expiresAt)));
}

function termFields(shown: ShownKey): readonly (readonly [name: string, value: string])[] {
  const { scopes, machines, rpm, tpm, concurrency, budget } = shown;
  const limit = (count: number | null): string => (count === null ? "none" : countText(count));
  return [
    ["scopes", scopes.join(", ")],
    ["machines", machines?.join(", ") ?? "any"],
    ["rpm", limit(rpm)],
    ["tpm", limit(tpm)],
    ["concurrency", limit(concurrency)],
    ["budget", budget === null ? "none" : budgetText(budget)],
  ];
}
