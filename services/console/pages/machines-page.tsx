import { machineWord } from "#shared/fleet/fleet-words.ts";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { WindowButton } from "../dialogs.tsx";
import { fleet } from "../live.ts";
import { Page } from "../parts.tsx";
import { mayChange } from "../session.ts";
import { type Column, Table } from "../table.tsx";
import { Age, Bar, MachineLink, MachineState, None } from "../values.tsx";
import { OneMachine } from "./machine-page.tsx";
import { PairDialog } from "./pair-machine.tsx";

export function Machines({ rest: [name] }: { readonly rest: readonly string[] }) {
  return name === undefined ? <MachineList /> : <OneMachine name={name} />;
}

const columns: readonly Column<ShownFleetMachine>[] = [
  ["machine", ({ machine }) => <MachineLink name={machine} />, "", ({ machine }) => machine],
  ["state", (machine) => <MachineState machine={machine} />, "", machineWord],
  ["model server", ({ runtime }) => runtime ?? <None text="none" />, "wide", ({ runtime }) => runtime],
  [
    "slots in use",
    ({ running, slots }) => (
      <>
        <Bar part={running} whole={slots} label={`${running} of ${slots} slots in use`} /> {running}/{slots}
      </>
    ),
    "",
    ({ running }) => running,
  ],
  ["waiting", ({ queued }) => queued, "right", ({ queued }) => queued],
  ["models", ({ models }) => models, "right wide", ({ models }) => models],
  [
    "heard",
    ({ status, heard_ms_ago: ms }) =>
      status === "present" ? "now" : ms === null ? "never" : <Age sinceMs={(fleet.value?.heardAt ?? 0) - ms} />,
    "right wide",
    ({ status, heard_ms_ago: ms }) => (status === "present" ? 0 : ms),
  ],
  ["why", ({ why }) => (why === null ? <None /> : <bdi>{why}</bdi>), "wide", ({ why }) => why],
];

const pairing = (close: () => void) => <PairDialog onClose={close} />;

function MachineList() {
  const { value } = fleet;
  return (
    <Page
      title="Machines"
      about="Every machine as this gateway sees it, live."
      actions={mayChange() && <WindowButton text="Pair a machine" name="pair" value="new" isPrimary window={pairing} />}
    >
      {value === undefined ? (
        <p class="quiet">Loading the machines…</p>
      ) : (
        <Table
          caption="Machines"
          columns={columns}
          rows={value.data}
          keyOf={({ machine, epoch }) => `${machine} ${epoch}`}
          empty="There is no machine yet. Pair one: you get a line to paste there."
        />
      )}
    </Page>
  );
}
