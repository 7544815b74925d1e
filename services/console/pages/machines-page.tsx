import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { query, setQuery } from "../address.ts";
import { QueryButton } from "../forms.tsx";
import { fleet } from "../live.ts";
import { Age, Bar, type Column, MachineLink, Page, Table } from "../parts.tsx";
import { mayChange } from "../session.ts";
import { MachineState } from "./machine-state.tsx";
import { OneMachine } from "./machine-page.tsx";
import { PairDialog } from "./pair-machine.tsx";

export function Machines({ rest: [name] }: { readonly rest: readonly string[] }) {
  return name === undefined ? <MachineList /> : <OneMachine name={name} />;
}

const columns: readonly Column<ShownFleetMachine>[] = [
  {
    name: "machine",
    cell: ({ machine }) => <MachineLink name={machine} />,
  },
  { name: "state", cell: (machine) => <MachineState machine={machine} /> },
  { name: "model server", cell: ({ runtime }) => runtime ?? <span class="quiet">none</span>, wide: true },
  {
    name: "slots in use",
    cell: ({ running, slots }) => (
      <>
        <Bar part={running} whole={slots} label={`${running} of ${slots} slots in use`} /> {running}/{slots}
      </>
    ),
  },
  { name: "waiting", right: true, cell: ({ queued }) => queued },
  { name: "models", right: true, wide: true, cell: ({ models }) => models },
  {
    name: "heard",
    right: true,
    wide: true,
    cell: ({ status, heard_ms_ago: ms }) =>
      status === "present" ? "now" : ms === null ? "never" : <Age sinceMs={(fleet.value?.heardAt ?? 0) - ms} />,
  },
  { name: "why", wide: true, cell: ({ why }) => (why === null ? <span class="quiet">–</span> : <bdi>{why}</bdi>) },
];

function MachineList() {
  const { value } = fleet;
  const pairing = query.value.get("pair") === "new";
  return (
    <Page
      title="Machines"
      about="Every machine as this gateway sees it, live."
      actions={
        mayChange() && (
          <QueryButton name="pair" value="new" isPrimary>
            Pair a machine
          </QueryButton>
        )
      }
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
      {pairing && mayChange() && <PairDialog onClose={() => setQuery("pair", undefined)} />}
    </Page>
  );
}
