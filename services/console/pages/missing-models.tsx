import { useState } from "preact/hooks";
import { allows } from "#shared/records/match-scope.ts";
import { to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { LinkButton } from "../forms.tsx";
import { missingModels } from "../model-rows.ts";
import { Answered, Page } from "../parts.tsx";
import { numberText } from "../quantity.ts";
import { mayChange } from "../session.ts";
import { type Column, Table } from "../table.tsx";
import { KeyName, Name, Time, useKeyNames } from "../values.tsx";
import { ModelTabs } from "./model-tabs.tsx";

const dayMs = 86_400_000;
const readMax = 1_000;
const keysShown = 3;

type Missing = ReturnType<typeof missingModels>[number];

const actions: Column<Missing> = [
  "actions",
  ({ name }) => (
    <div class="actions">
      <LinkButton text="Pull" href={to(["models"], { pull: "new", model: name })} />
      <LinkButton text="Make a route" href={to(["models", "routes"], { edit: "*new", name })} />
    </div>
  ),
];

/** The names that clients asked for within a day and that neither a machine nor a route has. */
export function MissingModels() {
  const [since] = useState(() => new Date(Date.now() - dayMs).toISOString());
  const refused = useAnswer("GET /requests", { query: { code: "model_not_found", since, limit: readMax } });
  const models = useAnswer("GET /models", {}).answer;
  const routes = useAnswer("GET /routes", {}).answer;
  const names = useKeyNames();
  const isThere = (name: string): boolean =>
    models?.data.some(({ id }) => id === name) === true ||
    routes?.data.some(({ route }) => route === name || (route.includes("*") && allows([route], name))) === true;
  const columns: readonly Column<Missing>[] = [
    ["name", ({ name }) => <Name>{name}</Name>, "", ({ name }) => name],
    ["requests", ({ requests }) => numberText(requests), "right", ({ requests }) => requests],
    ["last", ({ lastAt }) => <Time at={lastAt} />, "", ({ lastAt }) => lastAt],
    [
      "keys",
      ({ keys }) => [
        ...keys.slice(0, keysShown).map((id) => [<KeyName key={id} id={id} name={names.get(id)} />, " "]),
        keys.length > keysShown && `and ${keys.length - keysShown} more`,
      ],
    ],
    ...(mayChange() ? [actions] : []),
  ];
  return (
    <Page
      title="Missing models"
      about="Names that clients asked for within the last day, and that no machine and no route has now."
    >
      <ModelTabs at="missing" />
      <Answered of={refused} waiting="Reading the requests…">
        {({ data, next, looked_until: lookedUntil }) => (
          <>
            <Table
              caption="Missing models"
              columns={columns}
              rows={models && routes ? missingModels(data, isThere) : []}
              keyOf={({ name }) => name}
              empty="Every name that was asked for is there now."
            />
            {next !== null && (
              <p class="quiet">
                The day has more requests; these are read back to <Time at={lookedUntil} />.{" "}
                <code>trunkline requests --code model_not_found</code> lists them all.
              </p>
            )}
          </>
        )}
      </Answered>
    </Page>
  );
}
