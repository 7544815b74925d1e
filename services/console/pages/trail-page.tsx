import { query } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { QueryChoice, QueryField } from "../forms.tsx";
import { FaultNotice, Page, UnreadNotice } from "../parts.tsx";
import { actionWords, dayTimes } from "../trail-words.ts";
import { TrailTable } from "./trail-table.tsx";

const shownMax = 1_000;

export function Trail() {
  const given = (name: string): string => query.value.get(name) ?? "";
  const action = Object.keys(actionWords).find((each) => each === given("action")) as keyof typeof actionWords;
  const asked = { by: given("by"), about: given("about"), action, ...dayTimes(given("day")) };
  const { answer, fault } = useAnswer("GET /log", { query: { limit: shownMax, ...asked } });
  const filters = (
    <>
      <QueryField name="by" label="Who" type="search" value={given("by")} />
      <QueryChoice
        name="action"
        label="Did what"
        value={given("action")}
        options={[["", "anything"], ...Object.entries(actionWords)]}
      />
      <QueryField name="about" label="To what" type="search" value={given("about")} />
      <QueryField name="day" label="Day" type="date" value={given("day")} />
    </>
  );
  return (
    <Page
      title="Trail"
      about="Who changed which key, team, person, price, machine or route, and when, and who signed in to this console or read the content of a request."
    >
      <FaultNotice fault={fault} />
      <UnreadNotice unread={answer?.unread} />
      <TrailTable
        caption="Trail"
        rows={answer?.data.toReversed() ?? []}
        filters={filters}
        finds={false}
        empty={answer === undefined ? "Loading the trail…" : undefined}
      />
      {answer?.data.length === shownMax && (
        <p class="quiet">The list has the latest 1,000 changes. Choose a day for older ones.</p>
      )}
    </Page>
  );
}
