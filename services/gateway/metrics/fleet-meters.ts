import { type MemoryFacts, unloadReasons } from "#shared/protocol/presence.ts";
import type { FrameMeter, PlacementMeter } from "../jobs/job-events.ts";
import type { FloodMeter } from "../fleet/flood-guard.ts";
import type { AnswerMeter } from "../jobs/answer-parts.ts";
import type { RosterMachine } from "../fleet/roster.ts";
import type { Exposition, BoundedLabels } from "./exposition.ts";

export type FleetMeter = FrameMeter &
  PlacementMeter &
  FloodMeter &
  Pick<AnswerMeter, "offerRefused" | "usageNotBelieved">;

/** Adds the counters of events between this gateway and its machines. */
export function countFleetEvents(exposition: Exposition, machines: BoundedLabels): FleetMeter {
  const plain = exposition.counters([], {
    replays: "Replays that machines were asked for, after a reconnect or because a frame was missing.",
    replayedFrames: "Replayed frames that filled gaps in answers.",
    streamGapsFilled: "Gaps in answers that were filled before a client saw them.",
    retryBudgetEmpty: "Failovers that were refused because too many of the latest requests had needed one.",
  });
  const byMachine = exposition.counters(["machine"], {
    breakersOpened: "Times that a model of a machine was set aside because it kept failing.",
    tunnelFloods: "Connections of paired machines that were closed because they sent too many frames or commands.",
    usageNotBelieved: "Requests whose machine reported more tokens than possible; the count was lowered.",
  });
  const byReason = exposition.counters(["machine", "reason"], {
    offersRefused: "Job offers that a machine refused, by the fault of a request that no other machine takes.",
    failovers: "Requests that moved to another machine after one had accepted them, by the fault of the first.",
  });
  const { framesDropped } = exposition.counters(["reason"], {
    framesDropped: "Frames of machines that belong to no open job, or that are unreadable.",
  });
  const { messagesDropped } = exposition.counters(["machine", "kind"], {
    messagesDropped: "Presences and beats that were dropped unread because their machine sent too many.",
  });
  return {
    offerRefused: (machine, reason) => byReason.offersRefused.inc({ machine: machines.of(machine), reason }),
    failedOver: (machine, reason) => byReason.failovers.inc({ machine: machines.of(machine), reason }),
    replayAsked: () => plain.replays.inc(),
    gapFilled(frames) {
      plain.streamGapsFilled.inc();
      plain.replayedFrames.inc(frames);
    },
    retryBudgetEmpty: () => plain.retryBudgetEmpty.inc(),
    breakerOpened: (machine) => byMachine.breakersOpened.inc({ machine: machines.of(machine) }),
    usageNotBelieved: (machine) => byMachine.usageNotBelieved.inc({ machine: machines.of(machine) }),
    frameDropped: (reason) => framesDropped.inc({ reason }),
    announcementDropped: (machine, kind) => messagesDropped.inc({ machine: machines.of(machine), kind }),
    tunnelFlooded: (machine) => byMachine.tunnelFloods.inc({ machine: machines.of(machine) }),
  };
}

/**
 * States of a machine as operators see it: present with a model server, present without one, about to stop, silent, and
 * away.
 */
const states = ["ready", "waiting", "draining", "suspect", "offline"] as const;

/** Adds the metrics of the machines as this gateway sees them, and of the jobs that it waits for. */
export function measureFleet(
  exposition: Exposition,
  dependencies: {
    readonly machines: () => readonly RosterMachine[];
    readonly openJobs: () => number;
    readonly labels: BoundedLabels;
  },
): void {
  const { machines, openJobs, labels } = dependencies;
  const told = (): { machine: string; memory: MemoryFacts }[] =>
    machines().flatMap(({ status, presence: { machine, memory } }) =>
      status === "offline" || memory === undefined ? [] : [{ machine: labels.of(machine), memory }],
    );
  exposition.value("openJobs", "Open jobs of this gateway.", openJobs);
  exposition.gauge("machines", "Machines by their state, as this gateway sees it.", ["state"], (gauge) => {
    for (const state of states) gauge.set({ state }, 0);
    for (const machine of machines()) gauge.inc({ state: stateOf(machine) });
  });
  exposition.gauge(
    "machineMemoryBytes",
    "A machine's memory for models, as far as it tells: total, and free now.",
    ["machine", "kind"],
    (gauge) => {
      for (const { machine, memory } of told()) {
        gauge.inc({ machine, kind: "total" }, memory.totalMb * 1e6);
        gauge.inc({ machine, kind: "free" }, memory.freeMb * 1e6);
      }
    },
  );
  exposition.gauge(
    "machineUnloads",
    "Models that left a machine's memory since its agent started: for a request, for a kept model, or by somebody else.",
    ["machine", "reason"],
    (gauge) => {
      for (const { machine, memory } of told())
        for (const reason of unloadReasons) gauge.inc({ machine, reason }, memory.counts?.unloads[reason] ?? 0);
    },
  );
  const perMemory = (name: string, help: string, of: (memory: MemoryFacts) => number | undefined): void => {
    exposition.gauge(name, help, ["machine"], (gauge) => {
      for (const { machine, memory } of told()) gauge.inc({ machine }, of(memory) ?? 0);
    });
  };
  perMemory("machineModelsLoaded", "Models in a machine's memory (residentsMax).", ({ residents }) => residents.length);
  perMemory("machineLoads", "Models that an agent loaded since it started.", ({ counts }) => counts?.loads);
  perMemory(
    "machineLoadSeconds",
    "Seconds that these loads took together.",
    ({ counts }) => counts && counts.loadMs / 1_000,
  );
  perMemory("machineLoadFailures", "Loads that failed since an agent started.", ({ counts }) => counts?.failures);
  const perMachine = (name: string, help: string, of: (machine: RosterMachine["presence"]) => number): void => {
    exposition.gauge(name, help, ["machine"], (gauge) => {
      for (const { status, presence } of machines()) {
        if (status !== "offline") gauge.inc({ machine: labels.of(presence.machine) }, of(presence));
      }
    });
  };
  perMachine("machineSlots", "Jobs that a machine can run at once.", ({ slots }) => slots);
  perMachine("machineRunning", "Jobs that a machine runs, of all gateways.", ({ running }) => running);
  perMachine(
    "machineAnswersNotUtf8",
    "Answers of a machine's runtimes that had bytes which are no UTF-8.",
    ({ answersNotUtf8 = 0 }) => answersNotUtf8,
  );
  perMachine("machineQueued", "Jobs that wait on a machine, of all gateways.", ({ queued }) => queued);
}

/** Measures the connections of paired machines at a gateway that takes them. */
export function measureTunnels(exposition: Exposition, machines: () => number): void {
  exposition.value("tunnels", "Paired machines connected through this gateway.", machines);
}

function stateOf({ status, presence }: RosterMachine): (typeof states)[number] {
  if (status !== "present") return status;
  return presence.state === "gone" ? "offline" : presence.state;
}
