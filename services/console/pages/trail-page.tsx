import { query } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { FindField, QueryButton } from "../forms.tsx";
import { Page, UnreadNotice, Waiting } from "../parts.tsx";
import { actionWords } from "../trail-words.ts";
import { type TrailEntry, TrailTable } from "./trail-table.tsx";

const shownAtFirst = 100;
const shownMax = 1_000;

export function Trail() {
  return (
    <Page title="Trail" about="Who changed which key, machine or route, and when, and who signed in to this console.">
      <Entries />
    </Page>
  );
}

function Entries() {
  const limit = query.value.get("all") === null ? shownAtFirst : shownMax;
  const words = query.value.get("find") ?? "";
  const { answer, fault } = useAnswer("GET /log", { query: { limit } });
  if (answer === undefined) return <Waiting fault={fault}>The trail is read…</Waiting>;
  const found = answer.data.toReversed().filter((entry) => textOf(entry).includes(words.toLowerCase()));
  return (
    <section>
      <form class="row" onSubmit={(event) => event.preventDefault()} aria-label="Filter">
        <FindField hint="A name, an action or a key id." />
      </form>
      <UnreadNotice unread={answer.unread} />
      <TrailTable caption="Trail" entries={found} />
      {limit === shownAtFirst && answer.data.length === limit && (
        <div class="actions">
          <QueryButton name="all" value="yes">
            Show the latest {shownMax}
          </QueryButton>
        </div>
      )}
    </section>
  );
}

function textOf({ by, action, name, key, machine, route }: TrailEntry): string {
  return [by, actionWords[action], action, name, key, machine, route].join(" ").toLowerCase();
}
