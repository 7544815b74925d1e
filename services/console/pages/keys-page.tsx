import { useState } from "preact/hooks";
import { query } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { WindowButton } from "../dialogs.tsx";
import { QueryChoice } from "../forms.tsx";
import { FaultNotice, Page, UnreadNotice } from "../parts.tsx";
import { mayChangeKeys } from "../session.ts";
import { ChosenKeys } from "./chosen-keys.tsx";
import { IssueDialog } from "./issue-key.tsx";
import { OneKey } from "./key-page.tsx";
import { KeyTable } from "./key-table.tsx";

export function Keys({ rest: [id] }: { readonly rest: readonly string[] }) {
  return id === undefined ? <KeyList /> : <OneKey key={id} id={id} />;
}

const states = ["valid", "disabled", "expired", "revoked"] as const;

const issuing = (close: () => void) => <IssueDialog onClose={close} />;

function KeyList() {
  const given = (name: string): string => query.value.get(name) ?? "";
  const state = given("state") || "valid";
  const asked = states.find((each) => each === state);
  const { answer, fault } = useAnswer("GET /keys", { query: { limit: 1_000, state: asked, team: given("team") } });
  const teams = useAnswer("GET /teams", {}).answer?.data ?? [];
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  return (
    <Page
      title="Keys"
      about="Keys call models; admin and viewer keys use this console and the admin API."
      actions={
        mayChangeKeys() && <WindowButton text="Issue a key" name="issue" value="new" isPrimary window={issuing} />
      }
    >
      <FaultNotice fault={fault} />
      <UnreadNotice unread={answer?.unread} />
      <KeyTable
        caption="Keys"
        rows={answer?.data.toReversed() ?? []}
        empty={answer === undefined ? "Loading the keys…" : `No key is ${state === "all" ? "here" : state}.`}
        filters={
          <>
            <QueryChoice name="state" label="State" value={state} options={[...states, "all"]} />
            {teams.length > 0 && (
              <QueryChoice
                name="team"
                label="Team"
                value={given("team")}
                options={[["", "any"], ...teams.map(({ team }) => team)]}
              />
            )}
          </>
        }
        choice={mayChangeKeys() ? { chosen, onChoose: setChosen, nameOf: ({ name }) => name } : undefined}
      />
      <ChosenKeys keys={answer?.data.filter(({ id }) => chosen.has(id)) ?? []} onLeave={() => setChosen(new Set())} />
      {answer?.has_more === true && (
        <p class="quiet">
          These are the first 1,000 keys. <code>trunkline keys</code> lists all of them.
        </p>
      )}
    </Page>
  );
}
