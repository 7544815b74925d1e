import type { Clock } from "#shared/process/clock.ts";
import { changeKey } from "#shared/records/change-key.ts";
import { issueKey } from "#shared/records/issue-key.ts";
import { keyState, type KeyRecord } from "#shared/records/key-record.ts";
import type { KeyStore, UnreadRecord } from "#shared/records/key-store.ts";
import { type SessionRole, sessionMs } from "#shared/records/session-record.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { olderGateway } from "#shared/records/site-gateways.ts";
import { type Proved, printOf } from "./open-id.ts";

const actor = { by: "OpenID Connect" };

/**
 * Returns the key that stands for a person, valid for as long as the provider's word, and at most a session. The first sign-in issues it, and later
 * ones extend it. Nobody has its secret. Undefined if it is disabled: an operator has locked the person out. A key without the
 * digest of its person is found by the print in its name. It gets the digest once every gateway reads that.
 */
export async function keyOfPerson(
  { name, digest, untilMs }: Omit<Proved, "claims">,
  role: SessionRole,
  { keys, peppers, clock }: { readonly keys: KeyStore; readonly peppers: Peppers; readonly clock: Pick<Clock, "wall"> },
): Promise<KeyRecord | undefined> {
  const nowMs = clock.wall();
  const ttlMs = Math.min(sessionMs, Math.max(1, untilMs - nowMs));
  const isTheirs = (each: Partial<KeyRecord>): boolean =>
    each.person === undefined ? each.name?.endsWith(printOf(digest)) === true : each.person === digest;
  const unread: UnreadRecord[] = [];
  const own = (await keys.list(unread)).filter(
    (each) => each.kind !== "model" && each.revokedAt === undefined && isTheirs(each),
  );
  // A key that this version cannot read may be disabled.
  if (own.some((each) => each.disabledAt !== undefined) || unread.some(({ stored }) => isTheirs(Object(stored))))
    return undefined;
  const person = olderGateway("person", await keys.gateways()) === undefined ? digest : undefined;
  const kind = role === "viewer" ? "viewer" : "admin";
  const known = own.find((each) => each.kind === kind);
  if (known === undefined) {
    const { record } = await issueKey({ kind, name, person, scopes: ["*"], ttlMs }, { keys, peppers, clock, actor });
    return record;
  }
  if (person !== undefined)
    await changeKey(known.id, { action: "changed", terms: { name, person } }, { keys, clock, actor });
  if (keyState(known, nowMs) === "valid" && known.expiresAt >= nowMs + ttlMs) return known;
  const changed = await changeKey(known.id, { action: "extended", ttlMs }, { keys, clock, actor });
  return changed.outcome === "changed" || changed.outcome === "unchanged" ? changed.record : undefined;
}
