/** The page on which a member allows `trunkline login` on a computer to get a key. */
import { useEffect, useState } from "preact/hooks";
import { query } from "../address.ts";
import { ActionForm, Choice } from "../forms.tsx";
import { Facts, Notice } from "../parts.tsx";
import { Name, Names } from "../values.tsx";
import { changeOwn } from "./member-api.ts";
import type { Self } from "./session.ts";

export function LoginPage({ self: { name, address, teams } }: { readonly self: Self }) {
  const given = (field: string): string => query.value.get(field) ?? "";
  const [team, setTeam] = useState(given("team") || (teams[0]?.team ?? ""));
  const of = teams.find((each) => each.team === team);
  const [computer, port, state] = [given("computer").slice(0, 60), Number(given("port")), given("state")];
  useEffect(() => {
    document.title = "Log in · Trunkline";
  }, []);
  const allow = async (): Promise<void> => {
    const body = { port, state, challenge: given("challenge"), computer, team };
    location.assign((await changeOwn("POST /logins", { body })).url);
  };
  const refuse = (): void => location.assign(`http://127.0.0.1:${port}/?${new URLSearchParams({ state }).toString()}`);
  return (
    <main class="sign-in" id="page" tabIndex={-1}>
      <h1>Log in on this computer?</h1>
      <p>
        <code>trunkline login</code> asks for a key of <bdi>{name}</bdi>. Allow it only if you ran that command
        yourself, just now.
      </p>
      <Facts
        facts={[
          ["Computer", <Name>{computer}</Name>],
          ["Address", <Name>{address}</Name>],
          ...(teams.length > 1 ? [] : [["Team of the key", <Name>{team}</Name>] as const]),
          ["Valid for", of && `${of.own_days} days`],
          ["May call", of && <Names of={of.scopes} />],
        ]}
      />
      {of === undefined && (
        <Notice tone="bad">You are in no such team, and keys belong to a team. Ask the operator of this site.</Notice>
      )}
      <ActionForm action="Allow" dismiss="Refuse" onDo={allow} onCancel={refuse}>
        {teams.length > 1 && (
          <Choice
            label="Team of the key"
            param="team"
            value={team}
            onChoose={setTeam}
            options={teams.map((each) => each.team)}
          />
        )}
      </ActionForm>
    </main>
  );
}
