import { notListed } from "#shared/fleet/fleet-words.ts";
import type { ModelListing } from "#shared/protocol/model.ts";
import { to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { groupModels, type ModelRow, rangeText } from "../model-rows.ts";
import { WindowButton } from "../dialogs.tsx";
import { inMemory } from "../live.ts";
import { Answered, Notice, Page } from "../parts.tsx";
import { sizeText, windowText } from "../quantity.ts";
import { Remedy } from "../remedies.tsx";
import { mayChange } from "../session.ts";
import { type Column, Table } from "../table.tsx";
import { MachineLink, ModelBadges, ModelLink, Name } from "../values.tsx";
import { KeptModels } from "./kept-model.tsx";
import { MissingModels } from "./missing-models.tsx";
import { ModelTabs } from "./model-tabs.tsx";
import { OneModel } from "./model-page.tsx";
import { PullDialog } from "./pull-model.tsx";
import { Pulls } from "./pulls.tsx";
import { Routes } from "./routes-page.tsx";

export function Models({ rest: [part, id] }: { readonly rest: readonly string[] }) {
  if (part === "routes") return <Routes />;
  if (part === "kept") return <KeptModels />;
  if (part === "missing") return <MissingModels />;
  return part === "of" && id !== undefined ? <OneModel key={id} id={id} /> : <ModelList />;
}

const columns: readonly Column<ModelRow>[] = [
  ["model", ({ id }) => <ModelLink id={id} />, "", ({ id }) => id],
  ["capabilities", ({ offers }) => <ModelBadges offers={offers} />],
  [
    "window",
    ({ offers }) => rangeText(offers, (offer) => offer.context_window, windowText),
    "right",
    ({ offers }) => Math.max(...offers.map((offer) => offer.context_window)),
  ],
  [
    "size",
    ({ offers }) => rangeText(offers, (offer) => offer.size_mb, sizeText),
    "right wide",
    ({ offers }) => Math.max(...offers.map((offer) => offer.size_mb)),
  ],
  [
    "machines",
    ({ offers }) =>
      offers.map(({ machine, loaded, loading }) => (
        <>
          <a key={machine} href={to(["machines", machine])} title={loaded ? "in memory now" : ""}>
            <Name>{machine}</Name>
          </a>
          {loaded && <small> loaded</small>}
          {loading && <small> loading, {loading.percent} %</small>}{" "}
        </>
      )),
    "",
    ({ offers }) => offers.map(({ machine }) => machine).join(" "),
  ],
];

const pulling = (close: () => void) => <PullDialog onClose={close} />;

function ModelList() {
  const listing = useAnswer("GET /models", {}, inMemory.value);
  return (
    <Page
      title="Models"
      about="The models that the machines offer now."
      actions={mayChange() && <WindowButton text="Pull a model" name="pull" value="new" isPrimary window={pulling} />}
    >
      <ModelTabs at="models" />
      <Pulls />
      <Answered of={listing} waiting="Asking the machines for their models…">
        {({ data, machines }) => (
          <section>
            <Unlisted machines={machines} />
            <Table
              caption="Models"
              columns={columns}
              rows={groupModels(data)}
              keyOf={({ id }) => id}
              empty={
                machines.length === 0
                  ? ["No machine is connected yet. ", <Remedy by="pair" />]
                  : ["No machine offers a model now. ", <Remedy by="pull" />]
              }
            />
          </section>
        )}
      </Answered>
    </Page>
  );
}

function Unlisted({ machines }: Pick<ModelListing, "machines">) {
  return machines.map(({ machine, state }) =>
    state === "listed" ? null : (
      <Notice key={machine}>
        Models of <MachineLink name={machine} /> are missing: it {notListed[state]}.
      </Notice>
    ),
  );
}
