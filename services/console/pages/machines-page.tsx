import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { WindowButton } from "../forms.tsx";
import { fleet } from "../live.ts";
import { type Column, Page, Table } from "../parts.tsx";
import { mayChange } from "../session.ts";
import { Age, Bar, MachineLink, MachineState, None } from "../values.tsx";
import { OneMachine } from "./machine-page.tsx";
import { PairDialog } from "./pair-machine.tsx";

export function Machines({ rest: [name] }: { readonly rest: readonly string[] }) {
  return name === undefined ? <MachineList /> : <OneMachine name={name} />;
}

const columns: readonly Column<ShownFleetMachine>[] = [
  ["machine", ({ machine }) => <MachineLink name={machine} />],
  ["state", (machine) => <MachineState machine={machine} />],
  ["model server", ({ runtime }) => runtime ?? <None text="none" />, "wide"],
  [
    "slots in use",
    ({ running, slots }) => (
      <>
        <Bar part={running} whole={slots} label={`${running} of ${slots} slots in use`} /> {running}/{slots}
      </>
    ),
  ],
  ["waiting", ({ queued }) => queued, "right"],
  ["models", ({ models }) => models, "right wide"],
  [
    "heard",
    ({ status, heard_ms_ago: ms }) =>
      status === "present" ? "now" : ms === null ? "never" : <Age sinceMs={(fleet.value?.heardAt ?? 0) - ms} />,
    "right wide",
  ],
  ["why", ({ why }) => (why === null ? <None /> : <bdi>{why}</bdi>), "wide"],
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
        <p class="quiet">The gateway is asked for its fleet…</p>
      ) : (
        <Table
          caption="Machines"
          columns={columns}
          rows={value.data}
          keyOf={({ machine, epoch }) => `${machine} ${epoch}`}
          empty="No machine is here yet. Pair one: it gets one line to paste."
        />
      )}
    </Page>
  );
}
