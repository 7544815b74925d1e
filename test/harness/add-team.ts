import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import { newTeam, teamRecord } from "#shared/records/team-record.ts";

/** Adds a team whose members have its name in their claim. */
export async function addTeam(store: OpenedKeyStore, name: string, terms: object): Promise<void> {
  const at = store.clock.wall();
  const record = teamRecord.parse({
    name,
    version: 1,
    createdAt: at,
    changedAt: at,
    ...newTeam,
    claims: [name],
    ...terms,
  });
  const entry = { at, by: "the operator", action: "team_set", team: name, name } as const;
  if ((await store.teams.write(record, entry)) !== "written") throw new Error(`the team ${name} was not written`);
}
