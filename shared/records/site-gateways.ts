import { hostname } from "node:os";
import packageJson from "../../package.json" with { type: "json" };
import { termRows } from "../admin/key-terms.ts";
import { Fault } from "../fault/fault.ts";
import { auditActions, type AuditEntry, type RecordKind, recordOf } from "./audit-entry.ts";

/** A gateway that settled within this time counts as present. A gateway settles every few seconds. */
export const gatewayIsThereForMs = 15_000;

/** A gateway of a site, as it noted itself in the store. */
export interface SiteGateway {
  readonly name: string;
  readonly version: string;
  /** The token of its boot. */
  readonly token: string;
  /** Milliseconds since 1970. Undefined for a gateway of 0.3.0 or earlier. */
  readonly startedAt?: number | undefined;
  /** When it last noted that it is there. Undefined for the only gateway of a state folder. */
  readonly notedAt?: number | undefined;
}

/**
 * The version that began to write each term of a key, each field of a session and each action of the trail. Those of 0.2.0 have no row. A gateway of
 * an earlier version cannot read a record with the term, so that no such record is written beside it.
 */
export const sinceVersion: Record<string, string> = {
  person: "0.3.0",
  team: "0.3.0",
  ...Object.fromEntries(
    auditActions.filter((each) => /^(?:team|person|alert)_/.test(each)).map((each) => [each, "0.3.0"]),
  ),
  own: "0.3.0",
  price_set: "0.3.0",
  price_removed: "0.3.0",
  member: "0.3.0",
  ...Object.fromEntries(termRows.flatMap(([, { stored, since }]) => (since === undefined ? [] : [[stored, since]]))),
};

/** Returns the note of this gateway: the token of its boot, its version, the name of its host, and the time of its start. */
export function noteOfGateway(token: string, startedAt: number): string {
  return `${token} ${packageJson.version} ${hostname()} ${Math.round(startedAt)}`;
}

/** Reads the note of a gateway. One of 0.2.0 notes its token alone. */
export function readGatewayNote(note = "of-this-store"): SiteGateway {
  const [token = "", version = "0.2.0", name = token, started] = note.split(" ");
  return { name, version, token, ...(started !== undefined && { startedAt: Number(started) }) };
}

/** True for a term or an action that a gateway of 0.2.0 cannot read. */
export function isNew(word: string): boolean {
  return Object.hasOwn(sinceVersion, word);
}

/** Returns the gateway that cannot read a term or an action. */
export function olderGateway(word: string, gateways: readonly SiteGateway[]): SiteGateway | undefined {
  const since = sinceVersion[word] ?? "0";
  return gateways.find(({ version }) => version.localeCompare(since, "en", { numeric: true }) < 0);
}

/** Refuses a change with a term or an action that a gateway of the site cannot read. */
export function assertRead(
  words: readonly string[],
  gateways: readonly SiteGateway[],
  entry: Pick<AuditEntry, RecordKind> = {},
): void {
  const [kind = "key"] = recordOf(entry) ?? [];
  const noun = kind === "model" ? "keep" : kind;
  for (const word of words) {
    const older = olderGateway(word, gateways);
    if (older === undefined) continue;
    const [shown = word] = termRows.find(([, { stored }]) => stored === word) ?? [];
    throw new Fault(`${noun}_change_refused`, {
      message: `'${shown}' needs version ${sinceVersion[word]} at every gateway of the site, and the gateway ${older.name} runs ${older.version}. Update it first.`,
    });
  }
}
