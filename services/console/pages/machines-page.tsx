import { machineWord } from "#shared/fleet/fleet-words.ts";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import type { ShownMachineRecord } from "#shared/records/shown-machine.ts";
import { useAnswer } from "../admin-api.ts";
import { WindowButton } from "../dialogs.tsx";
import { fleet, now } from "../live.ts";
import { Page } from "../parts.tsx";
import { Remedy } from "../remedies.tsx";
import { mayChange } from "../session.ts";
import { type Column, Table } from "../table.tsx";
import { Age, Badges, MachineLink, None } from "../values.tsx";
import { OneMachine } from "./machine-page.tsx";
import { AgentVersion, MachineMemory, MachineSlots, MachineTokens, MachineWork } from "./machine-values.tsx";
import { PairDialog } from "./pair-machine.tsx";

export function Machines({ rest: [name] }: { readonly rest: readonly string[] }) {
  return name === undefined ? <MachineList /> : <OneMachine name={name} />;
}

/** A machine with the labels of its record. */
interface MachineRow extends ShownFleetMachine {
  readonly labels: readonly string[];
}

const columns: readonly Column<MachineRow>[] = [
  [
    "machine",
    ({ machine, labels }) => [<MachineLink name={machine} />, " ", <Badges words={labels} />],
    "",
    ({ machine, labels }) => [machine, ...labels].join(" "),
  ],
  ["state", (machine) => <MachineWork machine={machine} />, "", machineWord],
  ["slots in use", (machine) => <MachineSlots machine={machine} />, "", ({ running }) => running],
  ["waiting", ({ queued }) => queued, "right", ({ queued }) => queued],
  ["memory in use", (machine) => <MachineMemory machine={machine} />, "", usedMb],
  [
    "tokens/s",
    (machine) => <MachineTokens machine={machine} />,
    "right",
    ({ machine }) => now.value?.machine_tokens_per_second?.[machine] ?? 0,
  ],
  ["models", ({ models }) => models, "right wide", ({ models }) => models],
  ["model server", ({ runtime }) => runtime ?? <None text="none" />, "wide", ({ runtime }) => runtime],
  ["version", (machine) => <AgentVersion machine={machine} />, "wide", ({ version = null }) => version],
  [
    "heard",
    ({ status, heard_ms_ago: ms }) =>
      status === "present" ? "now" : ms === null ? "never" : <Age sinceMs={(fleet.value?.heardAt ?? 0) - ms} />,
    "right wide",
    ({ status, heard_ms_ago: ms }) => (status === "present" ? 0 : ms),
  ],
  ["why", ({ why }) => (why === null ? <None /> : <bdi>{why}</bdi>), "wide", ({ why }) => why],
];

function usedMb({ memory }: ShownFleetMachine): number | null {
  return memory ? memory.total_mb - memory.free_mb : null;
}

/** Returns machines with the words by which people tell them apart: their labels, and that their models run elsewhere. */
function rowsOf(
  machines: readonly ShownFleetMachine[],
  records: readonly ShownMachineRecord[] = [],
): readonly MachineRow[] {
  const byName = new Map(records.map((record) => [record.machine, record]));
  return machines.map((seen) => {
    const { labels = [], external } = byName.get(seen.machine) ?? {};
    return { ...seen, labels: external ? ["external", ...labels] : labels };
  });
}

const pairing = (close: () => void) => <PairDialog onClose={close} />;

function MachineList() {
  const { value } = fleet;
  const records = useAnswer("GET /machines", {});
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
          rows={rowsOf(value.data, records.answer?.data)}
          keyOf={({ machine, epoch }) => `${machine} ${epoch}`}
          empty={["No machine is connected yet. ", <Remedy by="pair" />]}
        />
      )}
    </Page>
  );
}
