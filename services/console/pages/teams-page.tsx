import type { ShownTeam } from "#shared/records/team-record.ts";
import { useAnswer } from "../admin-api.ts";
import { WindowButton } from "../dialogs.tsx";
import { numberText } from "../quantity.ts";
import { mayChangeKeys } from "../session.ts";
import type { Column } from "../table.tsx";
import { Names, TeamLink } from "../values.tsx";
import { budgetColumns, useUses } from "./budget-use.tsx";
import { LimitsText } from "./key-table.tsx";
import { RecordList } from "./record-page.tsx";
import { TeamDialog } from "./team-dialog.tsx";
import { OneTeam } from "./team-page.tsx";

export function Teams({ rest: [name] }: { readonly rest: readonly string[] }) {
  return name === undefined ? <TeamList /> : <OneTeam key={name} name={name} />;
}

const creating = (close: () => void) => <TeamDialog shown={undefined} onClose={close} />;

function TeamList() {
  const teams = useAnswer("GET /teams", {});
  const uses = useUses("team");
  const people = useAnswer("GET /people", {}).answer?.data ?? [];
  const membersOf = ({ team, invited }: ShownTeam): number =>
    people.filter((person) => person.teams.includes(team)).length + invited.length;
  const columns: readonly Column<ShownTeam>[] = [
    ["team", ({ team }) => <TeamLink name={team} />, "", ({ team }) => team],
    ["members", (team) => numberText(membersOf(team)), "right", membersOf],
    ...budgetColumns(teams.answer?.data, ({ team }) => team, uses),
    ["limits", (team) => <LimitsText of={team} />, "wide"],
    ["may call", ({ scopes }) => <Names of={scopes} />, "wide", ({ scopes }) => scopes.join(" ")],
  ];
  return (
    <RecordList
      title="Teams"
      about="A team's limits hold for all its keys together. Its members make keys of their own within them."
      actions={
        mayChangeKeys() && <WindowButton text="Create a team" name="create" value="new" isPrimary window={creating} />
      }
      of={teams}
      keyOf={({ team }) => team}
      empty="No team yet. A team gives several keys one budget, and lets its members make keys themselves."
      columns={columns}
    />
  );
}
