import { type MemoryFacts, unloadReasons } from "#shared/protocol/presence.ts";
import type { FrameMeter } from "../jobs/open-job.ts";
import type { PlacementMeter } from "../jobs/place-job.ts";
import type { FloodMeter } from "../fleet/flood-guard.ts";
import type { AnswerMeter } from "../jobs/answer-course.ts";
import type { RosterMachine } from "../fleet/roster.ts";
import type { Exposition, BoundedLabels } from "./exposition.ts";

export type FleetMeter = FrameMeter &
  PlacementMeter &
  FloodMeter &
  Pick<AnswerMeter, "offerRefused" | "usageNotBelieved">;

/** Adds the counters of events between this gateway and its machines. */
export function countFleetEvents(exposition: Exposition, machines: BoundedLabels): FleetMeter {
  const refused = exposition.counter({
    name: "trunkline_offers_refused_total",
    help: "Job offers that a machine refused, by the fault of a request that no other machine takes.",
    labels: ["machine", "reason"],
  });
  const failovers = exposition.counter({
    name: "trunkline_failovers_total",
    help: "Requests that moved to another machine after one had accepted them, by the fault of the first.",
    labels: ["machine", "reason"],
  });
  const replays = exposition.counter({
    name: "trunkline_replays_total",
    help: "Replays that machines were asked for, after a reconnect or because a frame was missing.",
  });
  const replayedFrames = exposition.counter({
    name: "trunkline_replayed_frames_total",
    help: "Replayed frames that filled gaps in answers.",
  });
  const gapsFilled = exposition.counter({
    name: "trunkline_stream_gaps_filled_total",
    help: "Gaps in answers that were filled before a client saw them.",
  });
  const retryBudgetEmpty = exposition.counter({
    name: "trunkline_retry_budget_empty_total",
    help: "Failovers that were refused because too many of the latest requests had needed one.",
  });
  const breakersOpened = exposition.counter({
    name: "trunkline_breakers_opened_total",
    help: "Times that a model of a machine was set aside because it kept failing.",
    labels: ["machine"],
  });
  const framesDropped = exposition.counter({
    name: "trunkline_frames_dropped_total",
    help: "Frames of machines that belong to no open job, or that are unreadable.",
    labels: ["reason"],
  });
  const announcementsDropped = exposition.counter({
    name: "trunkline_messages_dropped_total",
    help: "Presences and beats that were dropped unread because their machine sent too many.",
    labels: ["machine", "kind"],
  });
  const tunnelsFlooded = exposition.counter({
    name: "trunkline_tunnel_floods_total",
    help: "Connections of paired machines that were closed because they sent too many frames or commands.",
    labels: ["machine"],
  });
  const usageNotBelieved = exposition.counter({
    name: "trunkline_usage_not_believed_total",
    help: "Requests whose machine reported more tokens than possible; the count was lowered.",
    labels: ["machine"],
  });
  return {
    offerRefused: (machine, reason) => refused.inc({ machine: machines.of(machine), reason }),
    failedOver: (machine, reason) => failovers.inc({ machine: machines.of(machine), reason }),
    replayAsked: () => replays.inc(),
    gapFilled(frames) {
      gapsFilled.inc();
      replayedFrames.inc(frames);
    },
    retryBudgetEmpty: () => retryBudgetEmpty.inc(),
    breakerOpened: (machine) => breakersOpened.inc({ machine: machines.of(machine) }),
    usageNotBelieved: (machine) => usageNotBelieved.inc({ machine: machines.of(machine) }),
    frameDropped: (reason) => framesDropped.inc({ reason }),
    announcementDropped: (machine, kind) => announcementsDropped.inc({ machine: machines.of(machine), kind }),
    tunnelFlooded: (machine) => tunnelsFlooded.inc({ machine: machines.of(machine) }),
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
  exposition.value("trunkline_open_jobs", "Open jobs of this gateway.", openJobs);
  exposition.gauge(
    { name: "trunkline_machines", help: "Machines by their state, as this gateway sees it.", labels: ["state"] },
    (gauge) => {
      for (const state of states) gauge.set({ state }, 0);
      for (const machine of machines()) gauge.inc({ state: stateOf(machine) });
    },
  );
  exposition.gauge(
    {
      name: "trunkline_machine_memory_bytes",
      help: "A machine's memory for models, as far as it tells: total, and free now.",
      labels: ["machine", "kind"],
    },
    (gauge) => {
      for (const { machine, memory } of told()) {
        gauge.inc({ machine, kind: "total" }, memory.totalMb * 1e6);
        gauge.inc({ machine, kind: "free" }, memory.freeMb * 1e6);
      }
    },
  );
  exposition.gauge(
    {
      name: "trunkline_machine_unloads",
      help: "Models that left a machine's memory since its agent started: for a request, for a kept model, or by somebody else.",
      labels: ["machine", "reason"],
    },
    (gauge) => {
      for (const { machine, memory } of told())
        for (const reason of unloadReasons) gauge.inc({ machine, reason }, memory.counts?.unloads[reason] ?? 0);
    },
  );
  const perMemory = (name: string, help: string, of: (memory: MemoryFacts) => number | undefined): void => {
    exposition.gauge({ name, help, labels: ["machine"] }, (gauge) => {
      for (const { machine, memory } of told()) gauge.inc({ machine }, of(memory) ?? 0);
    });
  };
  perMemory(
    "trunkline_machine_models_loaded",
    "Models in a machine's memory (residentsMax).",
    ({ residents }) => residents.length,
  );
  perMemory("trunkline_machine_loads", "Models that an agent loaded since it started.", ({ counts }) => counts?.loads);
  perMemory(
    "trunkline_machine_load_seconds",
    "Seconds that these loads took together.",
    ({ counts }) => counts && counts.loadMs / 1_000,
  );
  perMemory(
    "trunkline_machine_load_failures",
    "Loads that failed since an agent started.",
    ({ counts }) => counts?.failures,
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
  perMachine(
    "trunkline_machine_answers_not_utf8",
    "Answers of a machine's runtimes that had bytes which are no UTF-8.",
    ({ answersNotUtf8 = 0 }) => answersNotUtf8,
  );
  perMachine("trunkline_machine_queued", "Jobs that wait on a machine, of all gateways.", ({ queued }) => queued);
}

/** Measures the connections of paired machines at a gateway that takes them. */
export function measureTunnels(exposition: Exposition, machines: () => number): void {
  exposition.value("trunkline_tunnels", "Paired machines connected through this gateway.", machines);
}

function stateOf({ status, presence }: RosterMachine): (typeof states)[number] {
  if (status !== "present") return status;
  return presence.state === "gone" ? "offline" : presence.state;
}
