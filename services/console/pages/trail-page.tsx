import { query, setQuery } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Button, Filters, FindField } from "../forms.tsx";
import { Answered, Page, UnreadNotice } from "../parts.tsx";
import { actionWords } from "../trail-words.ts";
import { type TrailEntry, TrailTable } from "./trail-table.tsx";

const shownAtFirst = 100;
const shownMax = 1_000;

export function Trail() {
  const limit = query.value.get("all") === null ? shownAtFirst : shownMax;
  const words = (query.value.get("find") ?? "").toLowerCase();
  const trail = useAnswer("GET /log", { query: { limit } });
  return (
    <Page title="Trail" about="Who changed which key, machine or route, and when, and who signed in to this console.">
      <Answered of={trail} waiting="The trail is read…">
        {({ data, unread }) => (
          <section>
            <Filters label="Filter">
              <FindField hint="A name, an action or a key id." />
            </Filters>
            <UnreadNotice unread={unread} />
            <TrailTable caption="Trail" rows={data.toReversed().filter((each) => textOf(each).includes(words))} />
            {limit === shownAtFirst && data.length === limit && (
              <div class="actions">
                <Button text={`Show the latest ${shownMax}`} onDo={() => setQuery("all", "yes")} />
              </div>
            )}
          </section>
        )}
      </Answered>
    </Page>
  );
}

function textOf({ by, action, name, key, machine, route }: TrailEntry): string {
  return [by, actionWords[action], action, name, key, machine, route].join(" ").toLowerCase();
}
