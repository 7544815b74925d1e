import type { FaultCode } from "#shared/fault/fault-code.ts";
import type { FrameMeter } from "../dispatch/open-jobs.ts";
import type { PlacementMeter } from "../dispatch/place-job.ts";
import type { BoundedLabels } from "./bounded-labels.ts";
import type { Exposition } from "./exposition.ts";

/** So many machines have a label of their own; the rest share one. */
export const machineLabelsMax = 200;

/** What happens between this gateway and its machines, counted. */
export class FleetMeters implements FrameMeter, PlacementMeter {
  readonly #machines: BoundedLabels;
  readonly #refused;
  readonly #failovers;
  readonly #replays;
  readonly #replayedFrames;
  readonly #gapsFilled;
  readonly #retryBudgetEmpty;
  readonly #breakersOpened;
  readonly #framesDropped;

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

  frameDropped(reason: Parameters<FrameMeter["frameDropped"]>[0]): void {
    this.#framesDropped.inc({ reason });
  }
}
