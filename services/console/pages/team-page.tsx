import { bookLimitRows, limitsText } from "#shared/admin/key-terms.ts";
import type { ShownPerson } from "#shared/records/person-record.ts";
import type { ShownTeam } from "#shared/records/team-record.ts";
import { go, to } from "../address.ts";
import { ApiFault, change, useAnswer } from "../admin-api.ts";
import { Confirm, TextAction, WindowButton } from "../dialogs.tsx";
import { LinkButton } from "../forms.tsx";
import { Answered, Facts, Page, Section } from "../parts.tsx";
import { numberText, shortNumber } from "../quantity.ts";
import { mayChangeKeys } from "../session.ts";
import { type Column, Table } from "../table.tsx";
import { Badge, Names, PersonLink } from "../values.tsx";
import { termFacts, useUses } from "./budget-use.tsx";
import { Refused } from "./chosen-keys.tsx";
import { KeyTable } from "./key-table.tsx";
import { Missing } from "./record-page.tsx";
import { TeamDialog } from "./team-dialog.tsx";
import { TrailOf } from "./trail-table.tsx";
import { UsageOf } from "./usage-table.tsx";

export function OneTeam({ name }: { readonly name: string }) {
  const shown = useAnswer("GET /teams/{team}", { params: { team: name } });
  const uses = useUses("team");
  const { answer: team } = shown;
  if (team === undefined) return <Missing title="Team" name={name} of={shown} />;
  const { own_keys: ownKeys, own_days: ownDays } = team;
  const each = limitsText(team.own_limits, shortNumber);
  return (
    <Page title={name} about="Team" actions={mayChangeKeys() && <TeamActions team={team} />}>
      <Section title="Terms">
        <Facts
          facts={[
            ...termFacts(bookLimitRows, team, { id: name, uses }),
            ["May call", <Names of={team.scopes} />],
            ["Machines", team.machines?.join(", ") ?? "any"],
            [
              "Own keys",
              ownKeys === 0
                ? "none"
                : `${numberText(ownKeys)} for each member, for at most ${ownDays} days${each && `, each with ${each}`}`,
            ],
            ["Members by claim", team.claims.length === 0 ? "none" : team.claims.join(", ")],
          ]}
        />
      </Section>
      <Members team={team} />
      <KeysOf asked={{ team: name }} />
      <UsageOf asked={{ team: name }} />
      <TrailOf object="team" name={name} />
    </Page>
  );
}

function TeamActions({ team }: { readonly team: ShownTeam }) {
  const { answer } = useAnswer("GET /keys", { query: { team: team.team, state: "valid", limit: 1_000 } });
  const remove = async (): Promise<void> => {
    await change("DELETE /teams/{team}", { params: { team: team.team }, query: { with_keys: "true" } });
    go(to(["teams"]));
  };
  const keys = answer?.data ?? [];
  return (
    <>
      <WindowButton text="Change" value="change" window={(close) => <TeamDialog shown={team} onClose={close} />} />
      <Confirm
        action="Remove"
        object={team.team}
        isFinal
        effect={[
          keys.length > 0
            ? [`Its keys that work are revoked: ${keys.length}. `, <Refused keys={keys} />]
            : "No key of it works.",
          " Its members stay known, and the sums of its usage stay.",
        ]}
        onDo={remove}
      />
    </>
  );
}

/** The keys of a team or of a person. */
export function KeysOf({ asked }: { readonly asked: { readonly team: string } | { readonly person: string } }) {
  const keys = useAnswer("GET /keys", { query: { limit: 1_000, ...("team" in asked && asked) } });
  const isOf = "team" in asked ? "team" : "person";
  return (
    <Section
      title="Keys"
      aside={
        "team" in asked &&
        mayChangeKeys() && <LinkButton text="Issue a key" href={to(["keys"], { issue: "new", ...asked })} />
      }
    >
      <Answered of={keys}>
        {({ data }) => (
          <KeyTable
            name="keys"
            caption={`Keys of this ${isOf}`}
            rows={data.filter((key) => "team" in asked || key.person === asked.person).toReversed()}
            empty={`No key of this ${isOf}.`}
            without={isOf}
          />
        )}
      </Answered>
    </Section>
  );
}

/** A member, or an e-mail address that nobody has signed in with yet. */
interface ShownMember {
  readonly person?: ShownPerson;
  readonly email: string | null;
  readonly how: "by hand" | "by claim" | "invited";
}

function Members({ team: { team, members, invited } }: { readonly team: ShownTeam }) {
  const people = useAnswer("GET /people", {}).answer?.data ?? [];
  const rows: readonly ShownMember[] = [
    ...people.flatMap((person): ShownMember[] => {
      if (!person.teams.includes(team)) return [];
      return [{ person, email: person.email, how: members.includes(person.person) ? "by hand" : "by claim" }];
    }),
    ...invited.map((email): ShownMember => ({ email, how: "invited" })),
  ];
  const columns: readonly Column<ShownMember>[] = [
    [
      "member",
      ({ person, email }) => (person ? <PersonLink id={person.person} name={person.name} /> : <bdi>{email}</bdi>),
      "",
      ({ person, email }) => person?.name ?? email,
    ],
    ["e-mail", ({ email }) => email && <bdi>{email}</bdi>, "", ({ email }) => email],
    [
      "membership",
      ({ how }) => (how === "invited" ? <Badge tone="warn">has not signed in</Badge> : how),
      "",
      ({ how }) => how,
    ],
    ["", (member) => mayChangeKeys() && member.how !== "by claim" && <Drop team={team} member={member} />],
  ];
  const add = (text: string) =>
    change("POST /teams/{team}/members", { params: { team }, body: memberIn(text.trim(), people) });
  return (
    <Section
      title="Members"
      aside={
        mayChangeKeys() && (
          <TextAction
            name="add"
            action="Add a member"
            title={["Add a member to ", <bdi>{team}</bdi>]}
            confirm="Add"
            label="Person or e-mail address"
            param="email"
            hint="Somebody who has not signed in becomes a member at the first sign-in with this verified address."
            suggest={{ of: "people" }}
            required
            onText={add}
          />
        )
      }
    >
      <Table
        name="members"
        caption="Members"
        rows={rows}
        keyOf={({ person, email }) => person?.person ?? email ?? ""}
        empty="No member yet. Its keys work without members."
        columns={columns}
      />
    </Section>
  );
}

/** Returns the person that a text names by e-mail address, name or id, or the text as the address of somebody unknown. */
function memberIn(text: string, people: readonly ShownPerson[]) {
  const named = people.filter(({ person, name, email }) => [person, name, email].includes(text));
  const [one, another] = named;
  if (another !== undefined)
    throw new ApiFault(0, {
      message: "Several people are called so: take the id from a person's page.",
      param: "email",
    });
  return one === undefined ? { email: text } : { person: one.person };
}

function Drop({ team, member: { person, email } }: { readonly team: string; readonly member: ShownMember }) {
  const query = person === undefined ? { email: email ?? "" } : { person: person.person };
  return (
    <div class="actions">
      <Confirm
        action="Drop"
        object={person?.name ?? email ?? ""}
        effect={
          person === undefined
            ? "A sign-in with this address no longer makes a member."
            : "Gateways refuse the person's keys of this team from the next request on. An admin can add the person again."
        }
        onDo={() => change("DELETE /teams/{team}/members", { params: { team }, query })}
      />
    </div>
  );
}
