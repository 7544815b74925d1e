import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { StoreWatch } from "../access/store-watch.ts";
import type { AnswerMeter } from "../dispatch/answer-course.ts";
import type { RosterMachine } from "../fleet/roster.ts";
import { BackingMeters } from "./backing-meters.ts";
import { BoundedLabels } from "./bounded-labels.ts";
import { BrokerWatch } from "./broker-watch.ts";
import { Exposition } from "./exposition.ts";
import { FleetMeters, machineLabelsMax } from "./fleet-meters.ts";
import { measureFleet } from "./measure-fleet.ts";
import { measureProcess } from "./measure-process.ts";
import { RequestMeters } from "./request-meters.ts";

interface Measured {
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
  readonly exposition = new Exposition();
  readonly brokerWatch: BrokerWatch;
  readonly requests: RequestMeters;
  readonly fleet: FleetMeters;
  readonly answers: AnswerMeter;
  readonly #backing: BackingMeters;
  readonly #process: { stop(): void };

  constructor({ broker, keys, store, clock, machines, offered, openJobs }: Measured) {
    const { exposition } = this;
    const labels = new BoundedLabels(machineLabelsMax);
    const requests = new RequestMeters(exposition, { offered });
    const fleet = new FleetMeters(exposition, labels);
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
    this.#backing = new BackingMeters(exposition, { broker, brokerWatch: this.brokerWatch, keys, store, clock });
    this.#process = measureProcess(exposition);
  }

  /** Returns all metrics as text, in the format that the `Accept` of a request asks for. */
  async show(accept: string | undefined): Promise<{ readonly type: string; readonly text: string }> {
    await this.#backing.look();
    return this.exposition.show(accept);
  }

  stop(): void {
    this.#process.stop();
  }
}
