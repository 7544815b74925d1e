import { Answered, Page } from "../parts.tsx";
import { windowText } from "../quantity.ts";
import { Table } from "../table.tsx";
import { Badges, Name, Names } from "../values.tsx";
import { useOwn } from "./member-api.ts";

export function OwnModels() {
  const models = useOwn("GET /models", {});
  return (
    <Page title="Models" about="The models that your keys may call now.">
      <Answered of={models} waiting="Asking the machines for their models…">
        {({ data }) => (
          <Table
            caption="Models"
            rows={data}
            keyOf={({ id }) => id}
            empty="Your teams may call no model that machines offer now."
            columns={[
              ["model", ({ id }) => <Name>{id}</Name>, "", ({ id }) => id],
              ["capabilities", ({ capabilities }) => <Badges words={wordsOf(capabilities)} />],
              ["window", (each) => windowText(each.context_window), "right", (each) => each.context_window],
              ["teams", ({ teams }) => <Names of={teams} />, "wide", ({ teams }) => teams.join(" ")],
            ]}
          />
        )}
      </Answered>
    </Page>
  );
}

function wordsOf(capabilities: object): string[] {
  return Object.entries(capabilities).flatMap(([word, isAble]) => (isAble === true ? [word] : []));
}
