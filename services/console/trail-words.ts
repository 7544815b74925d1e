/** The actions of the trail in words. Pure. */
import { detailText } from "#shared/admin/trail-text.ts";
import { browserText } from "./session-words.ts";
import { localTime, numberText } from "./quantity.ts";
import type { AuditAction } from "#shared/records/audit-entry.ts";
import type { ActName } from "#shared/records/sign-in.ts";

export const actionWords: Readonly<Record<AuditAction | ActName, string>> = {
  issued: "issued",
  rotated: "gave another secret",
  extended: "extended",
  disabled: "disabled",
  enabled: "enabled",
  changed: "changed its terms",
  revoked: "revoked",
  repeppered: "moved to a new pepper",
  machine_set: "set its models",
  machine_removed: "removed its record",
  machine_paired: "made a join line",
  machine_joined: "was paired by its join line",
  machine_join_reused: "used its join line again",
  machine_renamed: "renamed",
  machine_revoked: "revoked",
  machine_cordoned: "cordoned",
  machine_uncordoned: "uncordoned",
  machine_labelled: "set its labels",
  machine_external: "marked as external or not",
  machine_direct: "got direct credentials",
  machine_direct_ended: "ended its direct credentials",
  route_set: "set the route",
  route_removed: "removed the route",
  keep_set: "keeps the model in memory",
  keep_removed: "no longer keeps the model",
  price_set: "set the prices of",
  price_removed: "removed the prices of",
  team_set: "set the team",
  team_removed: "removed the team",
  team_member_added: "added a member to the team",
  team_member_dropped: "dropped a member of the team",
  person_signed_in: "signed in as",
  person_set: "set the limits of",
  person_disabled: "disabled",
  person_enabled: "enabled",
  person_removed: "forgot",
  alert_set: "added the alert target",
  alert_removed: "removed the alert target",
  signed_in: "signed in with",
  request_cancelled: "cancelled a request of",
  content_read: "read the content of a request of",
  content_forgotten: "removed the content of a request of",
};

/** The terms of a key in words, as far as their own names are none. */
const fieldWords: Readonly<Record<string, string>> = {
  rpm: "requests a minute",
  tpm: "tokens a minute",
  concurrency: "requests at once",
  loads: "loads a minute",
  scopes: "models",
  external: "external machines",
  continues: "answers go on elsewhere",
  keeps: "kept",
};

/** Returns the first and the last moment of a day in the viewer's zone; nothing for no day. */
export function dayTimes(day: string): { readonly since?: string; readonly until?: string } {
  const start = new Date(`${day}T00:00`);
  if (Number.isNaN(start.getTime())) return {};
  const end = new Date(start.getFullYear(), start.getMonth(), start.getDate() + 1);
  return { since: start.toISOString(), until: end.toISOString() };
}

const detailCharactersMax = 160;

/** Returns the further data of an action on one line. */
export function detailWords(detail: Readonly<Record<string, unknown>> | null): string {
  const { join: _, public_key: __, user_agent: agent, ...told } = detail ?? {};
  const shown = typeof agent === "string" ? { ...told, browser: browserText(agent) } : told;
  const text = detailText(shown, { count: numberText, time: localTime, label: (field) => fieldWords[field] });
  return text.length > detailCharactersMax ? `${text.slice(0, detailCharactersMax - 1)}…` : text;
}
