import { notListed } from "#shared/fleet/fleet-words.ts";
import type { ModelListing } from "#shared/protocol/model.ts";
import { query, setQuery, to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { groupModels, type ModelRow, rangeText } from "../model-rows.ts";
import { FindField, QueryButton } from "../forms.tsx";
import { inMemory } from "../live.ts";
import { type Column, FaultNotice, MachineLink, ModelLink, Name, Notice, Page, Table } from "../parts.tsx";
import { sizeText, windowText } from "../quantity.ts";
import { mayChange } from "../session.ts";
import { ModelBadges } from "./model-badges.tsx";
import { ModelTabs } from "./model-tabs.tsx";
import { OneModel } from "./model-page.tsx";
import { PullDialog } from "./pull-model.tsx";
import { Routes } from "./routes-page.tsx";

export function Models({ rest: [part, id] }: { readonly rest: readonly string[] }) {
  if (part === "routes") return <Routes />;
  return part === "of" && id !== undefined ? <OneModel key={id} id={id} /> : <ModelList />;
}

const columns: readonly Column<ModelRow>[] = [
  {
    name: "model",
    cell: ({ id }) => <ModelLink id={id} />,
  },
  { name: "can", cell: ({ offers }) => <ModelBadges offers={offers} /> },
  {
    name: "window",
    right: true,
    cell: ({ offers }) =>
      rangeText(
        offers.map((each) => each.context_window),
        windowText,
      ),
  },
  {
    name: "size",
    right: true,
    wide: true,
    cell: ({ offers }) =>
      rangeText(
        offers.map((each) => each.size_mb),
        sizeText,
      ),
  },
  {
    name: "on",
    cell: ({ offers }) =>
      offers.map(({ machine, loaded, loading }) => (
        <>
          <a key={machine} href={to(["machines", machine])} title={loaded ? "in memory now" : ""}>
            <Name>{machine}</Name>
          </a>
          {loaded && <small> loaded</small>}
          {loading && <small> loading, {loading.percent} %</small>}{" "}
        </>
      )),
  },
];

function ModelList() {
  const { answer, fault } = useAnswer("GET /models", {}, inMemory.value);
  const words = (query.value.get("find") ?? "").toLowerCase();
  const rows = groupModels(answer?.data ?? []).filter(({ id }) => id.toLowerCase().includes(words));
  return (
    <Page
      title="Models"
      about="Every model that the machines offer at this moment."
      actions={
        mayChange() && (
          <QueryButton name="pull" value="new" isPrimary>
            Pull a model
          </QueryButton>
        )
      }
    >
      <ModelTabs at="models" />
      <FaultNotice fault={fault} />
      {answer === undefined && fault === undefined && <p class="quiet">The machines are asked for their models…</p>}
      {answer !== undefined && (
        <section>
          <form class="row" onSubmit={(event) => event.preventDefault()} aria-label="Filter">
            <FindField placeholder="a name" />
          </form>
          <Unlisted listing={answer} />
          <Table
            caption="Models"
            columns={columns}
            rows={rows}
            keyOf={({ id }) => id}
            empty={
              answer.machines.length === 0
                ? "No machine is here yet. Pair one first."
                : "No model is found. Pull one onto a machine."
            }
          />
        </section>
      )}
      {query.value.get("pull") === "new" && mayChange() && <PullDialog onClose={() => setQuery("pull", undefined)} />}
    </Page>
  );
}

function Unlisted({ listing: { machines } }: { readonly listing: ModelListing }) {
  return machines.map(({ machine, state }) =>
    state === "listed" ? null : (
      <Notice key={machine}>
        Models of <MachineLink name={machine} /> are missing: it {notListed[state]}.
      </Notice>
    ),
  );
}
