import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { FrameMeter } from "../dispatch/open-jobs.ts";
import type { PlacementMeter } from "../dispatch/place-job.ts";
import type { Announcement, FloodMeter } from "../fleet/flood-guard.ts";
import type { BoundedLabels } from "./bounded-labels.ts";
import type { Exposition } from "./exposition.ts";

/** Machines with a label of their own; the rest share one. */
export const machineLabelsMax = 200;

/** Counts events between this gateway and its machines. */
export class FleetMeters implements FrameMeter, PlacementMeter, FloodMeter {
  readonly #machines: BoundedLabels;
  readonly #refused;
  readonly #failovers;
  readonly #replays;
  readonly #replayedFrames;
  readonly #gapsFilled;
  readonly #retryBudgetEmpty;
  readonly #breakersOpened;
  readonly #framesDropped;
  readonly #announcementsDropped;
  readonly #usageNotBelieved;

  constructor(exposition: Exposition, machines: BoundedLabels) {
    this.#machines = machines;
    this.#refused = exposition.counter({
      name: "trunkline_offers_refused_total",
      help: "Jobs that a machine was offered and did not take, by the fault that a request without another machine ends in.",
      labels: ["machine", "reason"],
    });
    this.#failovers = exposition.counter({
      name: "trunkline_failovers_total",
      help: "Requests that went on to another machine after one had taken them, by what the first one failed with.",
      labels: ["machine", "reason"],
    });
    this.#replays = exposition.counter({
      name: "trunkline_replays_total",
      help: "Times that a machine was asked for frames again, after a reconnect or where one was missing.",
    });
    this.#replayedFrames = exposition.counter({
      name: "trunkline_replayed_frames_total",
      help: "Frames that closed holes in answers.",
    });
    this.#gapsFilled = exposition.counter({
      name: "trunkline_stream_gaps_filled_total",
      help: "Holes in answers that were closed before a client saw them.",
    });
    this.#retryBudgetEmpty = exposition.counter({
      name: "trunkline_retry_budget_empty_total",
      help: "Failovers that were not made because too many of the latest requests had needed one.",
    });
    this.#breakersOpened = exposition.counter({
      name: "trunkline_breakers_opened_total",
      help: "Times that a model of a machine was left out because it failed again and again.",
      labels: ["machine"],
    });
    this.#framesDropped = exposition.counter({
      name: "trunkline_frames_dropped_total",
      help: "Frames of machines that nobody waited for, or that could not be read.",
      labels: ["reason"],
    });
    this.#announcementsDropped = exposition.counter({
      name: "trunkline_messages_dropped_total",
      help: "Presences and beats of a machine that sent too many, which were dropped unread.",
      labels: ["machine", "kind"],
    });
    this.#usageNotBelieved = exposition.counter({
      name: "trunkline_usage_not_believed_total",
      help: "Requests for which a machine reported more tokens than they can have used; only the possible number is counted.",
      labels: ["machine"],
    });
  }

  offerRefused(machine: string, reason: FaultCode): void {
    this.#refused.inc({ machine: this.#machines.of(machine), reason });
  }

  failedOver(machine: string, reason: FaultCode): void {
    this.#failovers.inc({ machine: this.#machines.of(machine), reason });
  }

  replayAsked(): void {
    this.#replays.inc();
  }

  gapFilled(frames: number): void {
    this.#gapsFilled.inc();
    this.#replayedFrames.inc(frames);
  }

  retryBudgetEmpty(): void {
    this.#retryBudgetEmpty.inc();
  }

  breakerOpened(machine: string): void {
    this.#breakersOpened.inc({ machine: this.#machines.of(machine) });
  }

  usageNotBelieved(machine: string): void {
    this.#usageNotBelieved.inc({ machine: this.#machines.of(machine) });
  }

  frameDropped(reason: Parameters<FrameMeter["frameDropped"]>[0]): void {
    this.#framesDropped.inc({ reason });
  }

  announcementDropped(machine: string, kind: Announcement): void {
    this.#announcementsDropped.inc({ machine: this.#machines.of(machine), kind });
  }
}
