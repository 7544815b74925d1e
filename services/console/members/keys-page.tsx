import { useState } from "preact/hooks";
import { limitsText } from "#shared/admin/key-terms.ts";
import { Confirm, FormDialog, WindowButton } from "../dialogs.tsx";
import { Choice, fieldsOf, listIn, TextField } from "../forms.tsx";
import { IssuedDialog } from "../pages/issued-key.tsx";
import { RecordList } from "../pages/record-page.tsx";
import { Answered, Facts, Notice, Section } from "../parts.tsx";
import { daysAgo, shortNumber } from "../quantity.ts";
import type { Column } from "../table.tsx";
import { Expiry, KeyState, Name, Names, None } from "../values.tsx";
import { Budgets } from "./budgets.tsx";
import { changeOwn, type OwnAnswer, useOwn } from "./member-api.ts";
import type { Self } from "./session.ts";

type OwnKey = OwnAnswer<"GET /keys">["data"][number];
type MadeKey = OwnAnswer<"POST /keys">;
type Team = Self["teams"][number];

export function OwnKeys() {
  const self = useOwn("GET /me", {});
  const keys = useOwn("GET /keys", {});
  const [made, setMade] = useState<MadeKey>();
  const teams = self.answer?.teams ?? [];
  const baseUrl = self.answer?.base_url ?? "";
  const making = (close: () => void) => <MakeDialog teams={teams} onMade={setMade} onClose={close} />;
  return (
    <RecordList
      title="Keys"
      about={["Your keys call the models at ", <Name>{baseUrl}</Name>, "."]}
      actions={teams.length > 0 && <WindowButton text="Make a key" name="make" value="new" isPrimary window={making} />}
      head={made && <IssuedDialog issued={made} baseUrl={baseUrl} onClose={() => setMade(undefined)} />}
      of={keys}
      columns={columnsOf(setMade)}
      keyOf={({ id }) => id}
      empty="You have no key yet."
    >
      <Answered of={self}>
        {({ budgets }) => (
          <>
            {teams.length === 0 && (
              <Notice>You are in no team yet, and keys belong to a team. Ask the operator of this site.</Notice>
            )}
            {budgets.length > 0 && (
              <Section title="Your budgets">
                <Budgets of={budgets} />
              </Section>
            )}
            {teams.map((team) => (
              <TeamSection key={team.team} shown={team} />
            ))}
          </>
        )}
      </Answered>
    </RecordList>
  );
}

function TeamSection({ shown }: { readonly shown: Team }) {
  const { team, scopes, machines, own_keys: most, own_days: days, own_limits: limits, keys, budgets } = shown;
  return (
    <Section title={`Team ${team}`}>
      <Facts
        facts={[
          ["May call", <Names of={scopes} />],
          ["Machines", machines === null ? "any" : <Names of={machines} />],
          ["Your keys", `${keys} of ${most}, each for ${days} days at most`],
          ["Limits of a key", limitsText(limits, shortNumber) || "none"],
          ["Limits of the team", limitsText({ ...shown, budget: null, spend: null }, shortNumber) || "none"],
          ["Budgets of the team", <Budgets of={budgets} />],
        ]}
      />
    </Section>
  );
}

const columnsOf = (onMade: (made: MadeKey) => void): readonly Column<OwnKey>[] => [
  ["name", ({ name }) => <bdi>{name}</bdi>, "", ({ name }) => name],
  ["state", ({ state }) => <KeyState state={state} />, "", ({ state }) => state],
  ["team", ({ team = "" }) => <Name>{team}</Name>, "wide", ({ team = "" }) => team],
  ["content kept", ({ capture }) => capture ?? <None />, "wide", ({ capture = "" }) => capture],
  ["used", ({ budgets }) => <Budgets of={budgets} />],
  ["expires", (key) => <Expiry at={key.expires_at} />, "", (key) => key.expires_at],
  ["last used", ({ last_day: day }) => (day === null ? <None /> : daysAgo(day, Date.now())), "", (key) => key.last_day],
  ["may call", ({ scopes }) => <Names of={scopes} />, "wide", ({ scopes }) => scopes.join(" ")],
  ["actions", (key) => <KeyActions shown={key} onMade={onMade} />],
];

function KeyActions({ shown: { id, name, state }, onMade }: { shown: OwnKey; onMade: (made: MadeKey) => void }) {
  if (state !== "valid") return null;
  return (
    <div class="actions">
      <Confirm
        action="New secret"
        object={name}
        effect="The key gets a new secret, which is shown once. The old one stays good for a day."
        onDo={async () => onMade(await changeOwn("POST /keys/{id}/rotate", { params: { id }, body: {} }))}
      />
      <Confirm
        action="Revoke"
        object={name}
        isFinal
        effect="Clients with the key are refused at once, and its running answers end."
        onDo={() => changeOwn("POST /keys/{id}/revoke", { params: { id } })}
      />
    </div>
  );
}

interface MakeProps {
  readonly teams: readonly Team[];
  readonly onMade: (made: MadeKey) => void;
  readonly onClose: () => void;
}

function MakeDialog({ teams, onMade, onClose }: MakeProps) {
  const [texts, setTexts] = useState({ name: "", team: teams[0]?.team ?? "", ttl: "", scopes: "" });
  const field = fieldsOf(texts, setTexts);
  const of = teams.find(({ team }) => team === texts.team);
  const make = async (): Promise<void> => {
    const { name, team, ttl, scopes } = texts;
    const body = { name, team, ttl: ttl || undefined, scopes: scopes.trim() === "" ? undefined : listIn(scopes) };
    onMade(await changeOwn("POST /keys", { body }));
  };
  return (
    <FormDialog title="Make a key" action="Make it" onDo={make} onClose={onClose}>
      <TextField {...field("name", "Name")} required placeholder="my laptop" />
      {teams.length > 1 && (
        <Choice
          label="Team"
          param="team"
          value={texts.team}
          onChoose={(team) => setTexts({ ...texts, team })}
          options={teams.map(({ team }) => team)}
        />
      )}
      <TextField
        {...field("ttl", "Valid for, from now on")}
        hint={`A duration such as 12h; ${of?.own_days}d at most, and if this is empty.`}
        placeholder={`${of?.own_days}d`}
      />
      <TextField
        {...field("scopes", "Models it may call")}
        hint="Ids, names or patterns with *. If this is empty, all that the team may call."
        placeholder={of?.scopes.join(" ") ?? "*"}
      />
    </FormDialog>
  );
}
