import type { FaultCode } from "#shared/fault/fault.ts";
import type { EndedRequest } from "../http/request-state.ts";
import type { ConnectionBound } from "../http/bound-connections.ts";
import type { CutReason } from "../http/timed-response.ts";
import type { Exposition } from "./exposition.ts";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/keys/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { StoreWatch } from "../keys/store-watch.ts";
import type { AnswerMeter } from "../jobs/answer-course.ts";
import type { RosterMachine } from "../fleet/roster.ts";
import { BackingMeters, BrokerWatch } from "./backing-meters.ts";
import { type FleetMeters, measureFleet } from "./fleet-meters.ts";

/** From a cached first token of a small model to a large model that is loaded first or has a queue. */
const firstTokenBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 300];
/** From a refusal to the longest time that a request may take. */
const totalBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 600];
/** From an idle gateway to one that asks machine after machine. */
const dispatchBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** From a thousand tokens a second to a model that hangs. */
const gapBuckets = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.25, 2.5, 5, 10, 30, 60];

/** Metrics of requests and of their answers. */
export class RequestMeters {
  readonly #models: ModelLabels;
  readonly #requests;
  readonly #faults;
  readonly #total;
  readonly #firstToken;
  readonly #dispatch;
  readonly #modelFirstToken;
  readonly #model;
  readonly #gaps;
  readonly #promptTokens;
  readonly #completionTokens;
  #open = 0;
  #openStreams = 0;
  readonly #answersCut;
  readonly #connectionsClosed;
  #answerBytes = 0;

  constructor(exposition: Exposition, dependencies: { readonly offered: (model: string) => string | undefined }) {
    this.#models = new ModelLabels(dependencies.offered);
    this.#requests = exposition.counter({
      name: "trunkline_requests_total",
      help: "Ended requests by outcome: ok, or a fault code.",
      labels: ["route", "model", "outcome", "streamed"],
    });
    this.#faults = exposition.counter({
      name: "trunkline_faults_total",
      help: "Faults of requests, and of connections without a readable request.",
      labels: ["code"],
    });
    this.#total = exposition.histogram({
      name: "trunkline_request_duration_seconds",
      help: "From the arrival of a request's head until its answer was sent.",
      labels: ["route", "model", "streamed"],
      buckets: totalBuckets,
    });
    this.#firstToken = exposition.histogram({
      name: "trunkline_time_to_first_token_seconds",
      help: "Seconds from a streamed request's headers to the first piece of its answer.",
      labels: ["model"],
      buckets: firstTokenBuckets,
    });
    this.#dispatch = exposition.histogram({
      name: "trunkline_dispatch_duration_seconds",
      help: "Seconds from the request's headers to a machine's acceptance: Trunkline's part of the wait.",
      labels: ["model"],
      buckets: dispatchBuckets,
    });
    this.#modelFirstToken = exposition.histogram({
      name: "trunkline_model_first_token_seconds",
      help: "Seconds from a machine's acceptance to the first piece of a stream: queue, model loading and prompt.",
      labels: ["model"],
      buckets: firstTokenBuckets,
    });
    this.#model = exposition.histogram({
      name: "trunkline_model_duration_seconds",
      help: "Seconds from a machine's acceptance to the end of the answer.",
      labels: ["model"],
      buckets: totalBuckets,
    });
    this.#gaps = exposition.histogram({
      name: "trunkline_token_gap_seconds",
      help: "Seconds between two pieces of a stream; a piece is one token, or several that came together.",
      labels: ["model"],
      buckets: gapBuckets,
    });
    this.#promptTokens = exposition.counter({
      name: "trunkline_prompt_tokens_total",
      help: "Prompt tokens, as booked for the key.",
      labels: ["model"],
    });
    this.#completionTokens = exposition.counter({
      name: "trunkline_completion_tokens_total",
      help: "Answer tokens, as booked for the key.",
      labels: ["model"],
    });
    this.#answersCut = exposition.counter({
      name: "trunkline_answers_cut_total",
      help: "Answers cut because the client did not read (stall), or because unread answers exceeded their limit (room).",
      labels: ["reason"],
    });
    this.#connectionsClosed = exposition.counter({
      name: "trunkline_connections_closed_total",
      help: "New connections closed at once because of the limit of all connections (total) or of one address (address), or because they come from no trusted proxy (stranger).",
      labels: ["reason"],
    });
    exposition.gauge(
      { name: "trunkline_answer_bytes", help: "Bytes of unread or unfinished answers in this process." },
      (gauge) => gauge.set(this.#answerBytes),
    );
    exposition.gauge({ name: "trunkline_open_requests", help: "Requests whose answer is not complete yet." }, (gauge) =>
      gauge.set(this.#open),
    );
    exposition.gauge({ name: "trunkline_open_streams", help: "Open streams." }, (gauge) =>
      gauge.set(this.#openStreams),
    );
  }

  requestBegan(): void {
    this.#open += 1;
  }

  requestEnded({ route, ms, facts }: EndedRequest): void {
    this.#open -= 1;
    const { answer, outcome = "client_closed" } = facts;
    const model =
      answer?.model === undefined ? this.#models.ofAsked(facts.model) : this.#models.ofOffered(answer.model);
    const streamed = facts.streamed === true ? "true" : "false";
    this.#requests.inc({ route, model, outcome, streamed });
    if (outcome !== "ok") this.#faults.inc({ code: outcome });
    this.#total.observe({ route, model, streamed }, ms / 1_000);
    if (answer === undefined || answer.jobs.length === 0) return;
    this.#promptTokens.inc({ model }, answer.promptTokens);
    this.#completionTokens.inc({ model }, answer.completionTokens);
    const { acceptedMs, firstTokenMs, endedMs } = answer;
    if (acceptedMs === undefined) return;
    this.#dispatch.observe({ model }, acceptedMs / 1_000);
    if (endedMs !== undefined) this.#model.observe({ model }, (endedMs - acceptedMs) / 1_000);
    if (firstTokenMs === undefined || facts.streamed !== true) return;
    this.#firstToken.observe({ model }, firstTokenMs / 1_000);
    this.#modelFirstToken.observe({ model }, (firstTokenMs - acceptedMs) / 1_000);
  }

  /** Counts a connection that was refused because no request could be read on it. */
  connectionRefused(code: FaultCode): void {
    this.#faults.inc({ code });
  }

  answersHold(bytes: number): void {
    this.#answerBytes = bytes;
  }

  answerCut(reason: CutReason): void {
    this.#answersCut.inc({ reason });
  }

  connectionClosed(reason: ConnectionBound): void {
    this.#connectionsClosed.inc({ reason });
  }

  /** Counts a stream as open. Returns the observer of the gaps between its pieces, in seconds. */
  streamBegan(model: string): { observe(seconds: number): void } {
    this.#openStreams += 1;
    return this.#gaps.labels({ model: this.#models.ofOffered(model) });
  }

  streamEnded(): void {
    this.#openStreams -= 1;
  }
}

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

/** Machines with a label of their own; the rest share one. */
export const machineLabelsMax = 200;
/** Models with a label of their own; the rest share one. */
export const modelLabelsMax = 100;

/** The shared label of all values that came after the limit was reached. */
const otherLabel = "other";
/** The label of requests that name no model. */
const noModel = "none";

/**
 * Bounds the values of a label. Each value is kept for good, since a counter must not go back. Above the limit, new
 * values share `otherLabel`. A client that invents names cannot fill the memory of systems that store metrics.
 */
export class BoundedLabels {
  readonly #max: number;
  readonly #values = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  has(value: string): boolean {
    return this.#values.has(value);
  }

  of(value: string): string {
    if (this.#values.has(value)) return value;
    if (this.#values.size >= this.#max) return otherLabel;
    this.#values.add(value);
    return value;
  }
}

/**
 * Chooses the model label of a request. Only a name that a machine offers becomes a label, because clients may ask for
 * any name.
 */
export class ModelLabels {
  readonly #labels = new BoundedLabels(modelLabelsMax);
  readonly #offered: (model: string) => string | undefined;

  /** `offered` returns the id by which a present machine offers the model that a client named, if one does. */
  constructor(offered: (model: string) => string | undefined) {
    this.#offered = offered;
  }

  /** Returns the label of a model by its id on a machine. */
  ofOffered(model: string): string {
    return this.#labels.of(model);
  }

  /** Returns the label of a model by the name that a client used. */
  ofAsked(model: string | undefined): string {
    if (model === undefined) return noModel;
    if (this.#labels.has(model)) return model;
    const offered = this.#offered(model);
    return offered === undefined ? otherLabel : this.#labels.of(offered);
  }
}
