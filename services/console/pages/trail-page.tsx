import { query, setQuery } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { Button } from "../forms.tsx";
import { Answered, Page, UnreadNotice } from "../parts.tsx";
import { TrailTable } from "./trail-table.tsx";

const shownAtFirst = 100;
const shownMax = 1_000;

export function Trail() {
  const limit = query.value.get("all") === null ? shownAtFirst : shownMax;
  const trail = useAnswer("GET /log", { query: { limit } });
  return (
    <Page title="Trail" about="Who changed which key, machine or route, and when, and who signed in to this console.">
      <Answered of={trail} waiting="The trail is read…">
        {({ data, unread }) => (
          <section>
            <UnreadNotice unread={unread} />
            <TrailTable caption="Trail" rows={data.toReversed()} />
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
