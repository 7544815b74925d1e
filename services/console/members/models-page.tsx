import { RecordList } from "../pages/record-page.tsx";
import { windowText } from "../quantity.ts";
import { Badges, Name, Names } from "../values.tsx";
import { useOwn } from "./member-api.ts";

export function OwnModels() {
  const models = useOwn("GET /models", {});
  return (
    <RecordList
      title="Models"
      about="The models that your keys may call now."
      of={models}
      waiting="Asking the machines for their models…"
      keyOf={({ id }) => id}
      empty="Your teams may call no model that machines offer now."
      columns={[
        ["model", ({ id }) => <Name>{id}</Name>, "", ({ id }) => id],
        ["capabilities", ({ capabilities }) => <Badges words={wordsOf(capabilities)} />],
        ["window", (each) => windowText(each.context_window), "right", (each) => each.context_window],
        ["teams", ({ teams }) => <Names of={teams} />, "wide", ({ teams }) => teams.join(" ")],
      ]}
    />
  );
}

function wordsOf(capabilities: object): string[] {
  return Object.entries(capabilities).flatMap(([word, isAble]) => (isAble === true ? [word] : []));
}
