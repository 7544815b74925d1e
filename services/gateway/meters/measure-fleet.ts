import type { RosterMachine } from "../fleet/roster.ts";
import type { BoundedLabels } from "./bounded-labels.ts";
import type { Exposition } from "./exposition.ts";

/**
 * States of a machine as operators see it: present with a model server, present without one, about to stop, silent, and
 * away.
 */
const states = ["ready", "waiting", "draining", "suspect", "offline"] as const;

/** Adds the metrics of the machines as this gateway sees them, and of the jobs that it waits for. */
export function measureFleet(
  exposition: Exposition,
  means: {
    readonly machines: () => readonly RosterMachine[];
    readonly openJobs: () => number;
    readonly labels: BoundedLabels;
  },
): void {
  const { machines, openJobs, labels } = means;
  exposition.gauge({ name: "trunkline_open_jobs", help: "Jobs that this gateway waits for." }, (gauge) =>
    gauge.set(openJobs()),
  );
  exposition.gauge(
    { name: "trunkline_machines", help: "Machines, by how this gateway sees them.", labels: ["state"] },
    (gauge) => {
      for (const state of states) gauge.set({ state }, 0);
      for (const machine of machines()) gauge.inc({ state: stateOf(machine) });
    },
  );
  const perMachine = (name: string, help: string, of: (machine: RosterMachine["presence"]) => number): void => {
    exposition.gauge({ name, help, labels: ["machine"] }, (gauge) => {
      for (const { status, presence } of machines()) {
        if (status !== "offline") gauge.inc({ machine: labels.of(presence.machine) }, of(presence));
      }
    });
  };
  perMachine("trunkline_machine_slots", "Jobs that a machine can run at once.", ({ slots }) => slots);
  perMachine("trunkline_machine_running", "Jobs that a machine runs, of all gateways.", ({ running }) => running);
  perMachine("trunkline_machine_queued", "Jobs that wait on a machine, of all gateways.", ({ queued }) => queued);
}

function stateOf({ status, presence }: RosterMachine): (typeof states)[number] {
  if (status !== "present") return status;
  return presence.state === "gone" ? "offline" : presence.state;
}
