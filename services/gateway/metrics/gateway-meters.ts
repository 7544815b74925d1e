import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { StoreWatch } from "../keys/store-watch.ts";
import type { AnswerMeter } from "../jobs/answer-course.ts";
import type { RosterMachine } from "../fleet/roster.ts";
import { BackingMeters, BrokerWatch } from "./backing-meters.ts";
import type { BoundedLabels, Exposition } from "./exposition.ts";
import { type FleetMeters, measureFleet } from "./fleet-meters.ts";
import { RequestMeters } from "./request-meters.ts";

/** Sampling interval of the event loop's delay. Each sample wakes even an idle process. */
const loopSampleMs = 50;
const loopQuantiles = [0.5, 0.9, 0.99, 1];

interface Measured {
  readonly exposition: Exposition;
  readonly machineLabels: BoundedLabels;
  /** The counters of the fleet, which jobs and presences need before the rest can be measured. */
  readonly fleet: FleetMeters;
  readonly broker: Broker;
  readonly keys: Pick<KeyStore, "ready">;
  readonly store?: Pick<StoreWatch, "founded" | "skewMs"> | undefined;
  readonly clock: Clock;
  /** Returns all machines in this gateway's roster. */
  readonly machines: () => readonly RosterMachine[];
  /** Returns the id by which a present machine offers the model that a client named, if one does. */
  readonly offered: (model: string) => string | undefined;
  readonly openJobs: () => number;
}

/** All metrics of one gateway. */
export class GatewayMeters {
  readonly exposition: Exposition;
  readonly brokerWatch: BrokerWatch;
  readonly requests: RequestMeters;
  readonly fleet: FleetMeters;
  readonly answers: AnswerMeter;
  readonly #backing: BackingMeters;
  readonly #loopDelay = monitorEventLoopDelay({ resolution: loopSampleMs });

  constructor({ exposition, machineLabels: labels, fleet, ...measured }: Measured) {
    const { broker, keys, store, clock, machines, offered, openJobs } = measured;
    const requests = new RequestMeters(exposition, { offered });
    this.exposition = exposition;
    this.requests = requests;
    this.fleet = fleet;
    this.answers = {
      offerRefused: (machine, reason) => fleet.offerRefused(machine, reason),
      streamBegan: (model) => requests.streamBegan(model),
      streamEnded: () => requests.streamEnded(),
      usageNotBelieved: (machine) => fleet.usageNotBelieved(machine),
    };
    measureFleet(exposition, { machines, openJobs, labels });
    this.brokerWatch = new BrokerWatch(broker, clock);
    this.#backing = new BackingMeters(exposition, { broker, keys, store, clock });
    this.#measureLoopDelay();
    exposition.addProcessMetrics(loopSampleMs);
  }

  /** Returns all metrics as text, in the format that the `Accept` of a request asks for. */
  async show(accept: string | undefined): Promise<{ readonly type: string; readonly text: string }> {
    await this.#backing.look();
    return this.exposition.show(accept);
  }

  stop(): void {
    this.#loopDelay.disable();
  }

  #measureLoopDelay(): void {
    const delay = this.#loopDelay;
    delay.enable();
    this.exposition.gauge(
      {
        name: "trunkline_event_loop_delay_seconds",
        help: "Event loop delay since the last scrape.",
        labels: ["quantile"],
      },
      (gauge) => {
        for (const quantile of loopQuantiles) {
          const lateMs = delay.count === 0 ? 0 : delay.percentile(quantile * 100) / 1e6 - loopSampleMs;
          gauge.set({ quantile }, Math.max(0, lateMs) / 1_000);
        }
        delay.reset();
      },
    );
  }
}
