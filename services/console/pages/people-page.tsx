import { useState } from "preact/hooks";
import { bookLimitRows } from "#shared/admin/key-terms.ts";
import type { ShownPerson } from "#shared/records/person-record.ts";
import { go, to } from "../address.ts";
import { change, useAnswer } from "../admin-api.ts";
import { Confirm, FormDialog, WindowButton } from "../dialogs.tsx";
import { Facts, Page, Section } from "../parts.tsx";
import { mayChangeKeys } from "../session.ts";
import type { Column } from "../table.tsx";
import { Badge, PersonLink, TeamLink, Time } from "../values.tsx";
import { budgetColumns, termFacts, useUses } from "./budget-use.tsx";
import { Refused } from "./chosen-keys.tsx";
import { givenIn, LimitFields, termsOf } from "./key-terms.tsx";
import { KeysOf } from "./team-page.tsx";
import { Missing, RecordList } from "./record-page.tsx";
import { TrailOf } from "./trail-table.tsx";
import { UsageOf } from "./usage-table.tsx";

export function People({ rest: [id] }: { readonly rest: readonly string[] }) {
  return id === undefined ? <PersonList /> : <OnePerson key={id} id={id} />;
}

function TeamsOf({ teams }: Pick<ShownPerson, "teams">) {
  return teams.flatMap((team) => [<TeamLink key={team} name={team} />, " "]);
}

function PersonState({ state }: Pick<ShownPerson, "state">) {
  return <Badge tone={state === "active" ? "good" : "bad"}>{state}</Badge>;
}

function PersonList() {
  const people = useAnswer("GET /people", {});
  const uses = useUses("person");
  const columns: readonly Column<ShownPerson>[] = [
    ["name", ({ person, name }) => <PersonLink id={person} name={name} />, "", ({ name }) => name],
    ["state", ({ state }) => <PersonState state={state} />, "", ({ state }) => state],
    ["teams", ({ teams }) => <TeamsOf teams={teams} />, "", ({ teams }) => teams.join(" ")],
    ["e-mail", ({ email }) => email && <bdi>{email}</bdi>, "", ({ email }) => email],
    ["last sign-in", ({ signed_in_at: at }) => <Time at={at} />, "", ({ signed_in_at: at }) => Date.parse(at)],
    ...budgetColumns(people.answer?.data, ({ person }) => person, uses),
  ];
  return (
    <RecordList
      title="People"
      about="Everybody who has signed in by OpenID Connect and has a team, or had one."
      of={people}
      keyOf={({ person }) => person}
      empty={[
        "Nobody has signed in yet. ",
        <a href={to(["teams"])}>A team</a>,
        " invites people by their e-mail addresses.",
      ]}
      columns={columns}
    />
  );
}

function OnePerson({ id }: { readonly id: string }) {
  const shown = useAnswer("GET /people/{person}", { params: { person: id } });
  const uses = useUses("person");
  const { answer: person } = shown;
  if (person === undefined) {
    return (
      <Missing title="Person" name={id.slice(0, 12)} of={shown}>
        <p>
          The site may have forgotten the person. <a href={to(["usage"], { person: id })}>The usage stays</a>
        </p>
      </Missing>
    );
  }
  return (
    <Page title={person.name} about="Person" actions={mayChangeKeys() && <PersonActions shown={person} />}>
      <Section title="Terms">
        <Facts
          facts={[
            ["State", <PersonState state={person.state} />],
            ["Teams", <TeamsOf teams={person.teams} />],
            ["E-mail", person.email && <bdi>{person.email}</bdi>],
            ["Last sign-in", <Time at={person.signed_in_at} />],
            ...termFacts(bookLimitRows, person, { id, uses }),
            ["Signs in as", <bdi>{`${person.subject} at ${person.issuer}`}</bdi>],
          ]}
        />
      </Section>
      <KeysOf asked={{ person: id }} />
      <UsageOf asked={{ person: id }} />
      <TrailOf object="person" name={id} />
    </Page>
  );
}

function PersonActions({ shown }: { readonly shown: ShownPerson }) {
  const { person, name, state } = shown;
  const at = { params: { person } };
  const isOut = state === "disabled";
  const { answer } = useAnswer("GET /keys", { query: { state: "valid", limit: 1_000 } });
  const keys = answer?.data.filter((key) => key.person === person) ?? [];
  const refused = keys.length > 0 && [" ", <Refused keys={keys} />];
  const remove = async (): Promise<void> => {
    await change("DELETE /people/{person}", at);
    go(to(["people"]));
  };
  return (
    <>
      <WindowButton
        text="Change limits"
        value="limits"
        window={(close) => <LimitsDialog shown={shown} onClose={close} />}
      />
      <Confirm
        action={isOut ? "Enable" : "Disable"}
        object={name}
        effect={
          isOut
            ? "The person can sign in again, and gateways accept the person's keys again."
            : ["The person can no longer sign in.", refused, " An admin can enable the person again."]
        }
        onDo={() => change(`POST /people/{person}/${isOut ? "enable" : "disable"}`, at)}
      />
      <Confirm
        action="Remove"
        object={name}
        isFinal
        effect={[
          "The person's keys are revoked, and the site forgets the name and the e-mail address.",
          refused,
          " Sums of usage stay. Whoever has a team by a claim can sign in again as somebody new.",
        ]}
        onDo={remove}
      />
    </>
  );
}

function LimitsDialog({ shown, onClose }: { readonly shown: ShownPerson; readonly onClose: () => void }) {
  const [terms, setTerms] = useState(termsOf({ ...shown, scopes: [] }));
  const save = () =>
    change("PATCH /people/{person}", { params: { person: shown.person }, body: givenIn(terms, bookLimitRows) });
  return (
    <FormDialog title={["Limits of ", <bdi>{shown.name}</bdi>]} action="Save" onDo={save} onClose={onClose}>
      <p class="quiet">They hold for all keys of the person together, in all teams.</p>
      <LimitFields terms={terms} onTerms={setTerms} rows={bookLimitRows} />
    </FormDialog>
  );
}
