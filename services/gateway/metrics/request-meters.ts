import { unit } from "#shared/money/money.ts";
import type { FaultCode } from "#shared/fault/fault.ts";
import type { EndedRequest } from "../http/request-state.ts";
import type { ConnectionBound } from "../http/bound-connections.ts";
import type { CutReason } from "../http/timed-response.ts";
import { type Exposition, BoundedLabels, otherLabel } from "./exposition.ts";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Broker } from "#shared/broker/broker.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { StoreWatch } from "../keys/store-watch.ts";
import type { AnswerMeter } from "../jobs/answer-parts.ts";
import type { RosterMachine } from "../fleet/roster.ts";
import { BrokerWatch, measureBacking } from "./backing-meters.ts";
import { type FleetMeter, measureFleet } from "./fleet-meters.ts";

/** From a cached first token of a small model to a large model that is loaded first or has a queue. */
const firstTokenBuckets = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 300];
/** From a refusal to the longest time that a request may take. */
const totalBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 600];
/** From an idle gateway to one that asks machine after machine. */
const dispatchBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** From a thousand tokens a second to a model that hangs. */
const gapBuckets = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.25, 2.5, 5, 10, 30, 60];

/** Adds the metrics of requests and of their answers. `offered` finds the id of a model that a client named. */
export function measureRequests(
  exposition: Exposition,
  { offered }: { readonly offered: (model: string) => string | undefined },
) {
  const models = new ModelLabels(offered);
  const teams = new BoundedLabels(teamLabelsMax);
  let open = 0;
  let openStreams = 0;
  let answerBytes = 0;
  const { requests } = exposition.counters(["route", "model", "outcome", "streamed"], {
    requests: "Ended requests by outcome: ok, or a fault code.",
  });
  const { faults } = exposition.counters(["code", "team"], {
    faults: "Faults of requests, and of connections without a readable request.",
  });
  const { requestDurationSeconds } = exposition.histograms(totalBuckets, ["route", "model", "streamed"], {
    requestDurationSeconds: "From the arrival of a request's head until its answer was sent.",
  });
  const firstTokens = exposition.histograms(firstTokenBuckets, ["model"], {
    timeToFirstTokenSeconds: "Seconds from a streamed request's headers to the first piece of its answer.",
    modelFirstTokenSeconds:
      "Seconds from a machine's acceptance to the first piece of a stream: queue, model loading and prompt.",
    modelLoadWaitSeconds:
      "Seconds that a request waited on its machine until its model was loaded; requests that did not wait are left out.",
  });
  const { dispatchDurationSeconds } = exposition.histograms(dispatchBuckets, ["model"], {
    dispatchDurationSeconds:
      "Seconds from the request's headers to a machine's acceptance: Trunkline's part of the wait.",
  });
  const { modelDurationSeconds } = exposition.histograms(totalBuckets, ["model"], {
    modelDurationSeconds: "Seconds from a machine's acceptance to the end of the answer.",
  });
  const { tokenGapSeconds } = exposition.histograms(gapBuckets, ["model"], {
    tokenGapSeconds: "Seconds between two pieces of a stream; a piece is one token, or several that came together.",
  });
  const { promptTokens, completionTokens, cost } = exposition.counters(["model", "team"], {
    promptTokens: "Prompt tokens, as booked for the key.",
    completionTokens: "Answer tokens, as booked for the key.",
    cost: "The cost of requests in the currency of the site, as booked; of models that have a price.",
  });
  const { answersCut, connectionsClosed } = exposition.counters(["reason"], {
    answersCut:
      "Answers cut because the client did not read (stall), or because unread answers exceeded their limit (room).",
    connectionsClosed:
      "New connections closed at once because of the limit of all connections (total) or of one address (address), or because they come from no trusted proxy (stranger).",
  });
  const { captures } = exposition.counters(["outcome"], {
    captures:
      "Requests of captured keys by what became of their content: kept, cut for lack of room, or failed to be stored.",
  });
  exposition.value("answerBytes", "Bytes of unread or unfinished answers in this process.", () => answerBytes);
  exposition.value("openRequests", "Requests whose answer is not complete yet.", () => open);
  exposition.value("openStreams", "Open streams.", () => openStreams);
  return {
    requestBegan(): void {
      open += 1;
    },
    requestEnded({ route, ms, facts }: EndedRequest): void {
      open -= 1;
      const { answer, outcome = "client_closed" } = facts;
      const model = answer?.model === undefined ? models.ofAsked(facts.model) : models.ofOffered(answer.model);
      const streamed = facts.streamed === true ? "true" : "false";
      requests.inc({ route, model, outcome, streamed });
      const team = teams.of(facts.team ?? noTeam);
      if (outcome !== "ok") faults.inc({ code: outcome, team });
      requestDurationSeconds.observe({ route, model, streamed }, ms / 1_000);
      if (answer === undefined || answer.jobs.length === 0) return;
      promptTokens.inc({ model, team }, answer.promptTokens);
      completionTokens.inc({ model, team }, answer.completionTokens);
      if (answer.cost !== undefined) cost.inc({ model, team }, answer.cost / unit);
      const { acceptedMs, loadWaitMs, firstTokenMs, endedMs } = answer;
      if (loadWaitMs !== undefined) firstTokens.modelLoadWaitSeconds.observe({ model }, loadWaitMs / 1_000);
      if (acceptedMs === undefined) return;
      dispatchDurationSeconds.observe({ model }, acceptedMs / 1_000);
      if (endedMs !== undefined) modelDurationSeconds.observe({ model }, (endedMs - acceptedMs) / 1_000);
      if (firstTokenMs === undefined) return;
      firstTokens.timeToFirstTokenSeconds.observe({ model }, firstTokenMs / 1_000);
      firstTokens.modelFirstTokenSeconds.observe({ model }, (firstTokenMs - acceptedMs) / 1_000);
    },
    connectionRefused: (code: FaultCode): void => faults.inc({ code, team: noTeam }),
    connectionClosed: (reason: ConnectionBound): void => connectionsClosed.inc({ reason }),
    answersHold(bytes: number): void {
      answerBytes = bytes;
    },
    captured: (outcome: "kept" | "cut" | "failed"): void => captures.inc({ outcome }),
    answerCut: (reason: CutReason): void => answersCut.inc({ reason }),
    streamBegan(model: string): { observe(seconds: number): void } {
      openStreams += 1;
      return tokenGapSeconds.labels({ model: models.ofOffered(model) });
    },
    streamEnded(): void {
      openStreams -= 1;
    },
  };
}

/** Sampling interval of the event loop's delay. Each sample wakes even an idle process. */
const loopSampleMs = 50;
const loopQuantiles = [0.5, 0.9, 0.99, 1];

interface MeterDependencies {
  readonly exposition: Exposition;
  readonly machineLabels: BoundedLabels;
  /** The counters of the fleet, which jobs and presences need before the rest can be measured. */
  readonly fleet: FleetMeter;
  readonly broker: Broker;
  readonly keys: Pick<KeyStore, "ready">;
  readonly store?: Pick<StoreWatch, "founded" | "skewMs"> | undefined;
  readonly clock: Clock;
  readonly machines: () => readonly RosterMachine[];
  /** Returns the id by which a present machine offers the model that a client named, if one does. */
  readonly offered: (model: string) => string | undefined;
  readonly openJobs: () => number;
}

/** Adds all metrics of one gateway. */
export function openMeters({ exposition, machineLabels: labels, fleet, ...measured }: MeterDependencies) {
  const { broker, keys, store, clock, machines, offered, openJobs } = measured;
  const requests = measureRequests(exposition, { offered });
  const answers: AnswerMeter = { ...fleet, ...requests };
  measureFleet(exposition, { machines, openJobs, labels });
  const measureRoundTrips = measureBacking(exposition, { broker, keys, store, clock });
  const delay = monitorEventLoopDelay({ resolution: loopSampleMs });
  delay.enable();
  exposition.gauge("eventLoopDelaySeconds", "Event loop delay since the last scrape.", ["quantile"], (gauge) => {
    for (const quantile of loopQuantiles) {
      const lateMs = delay.count === 0 ? 0 : delay.percentile(quantile * 100) / 1e6 - loopSampleMs;
      gauge.set({ quantile }, Math.max(0, lateMs) / 1_000);
    }
    delay.reset();
  });
  exposition.addProcessMetrics(loopSampleMs);
  const spans = exposition.counters([], {
    traceSpansSent: "Spans that the collector of traces took.",
    traceSpansDropped: "Spans that the collector never gets, since it is away, slow or refuses them.",
  });
  const { alertCalls } = exposition.counters(["kind", "outcome"], {
    alertCalls: "Calls of alert targets, by the kind of the alarm; the outcome is sent or failed.",
  });
  return {
    exposition,
    alertCalled: (kind: string, outcome: "sent" | "failed"): void => alertCalls.inc({ kind, outcome }),
    requests,
    answers,
    traces: {
      spansSent: (count: number): void => spans.traceSpansSent.inc(count),
      spansDropped: (count: number): void => spans.traceSpansDropped.inc(count),
    },
    brokerWatch: new BrokerWatch(broker, clock),
    /** Returns all metrics as text, in the format that the `Accept` of a request asks for. */
    async show(accept: string | undefined): ReturnType<Exposition["show"]> {
      await measureRoundTrips();
      return exposition.show(accept);
    },
    stop: () => void delay.disable(),
  };
}

/** Machines with a label of their own; the rest share one. */
export const machineLabelsMax = 200;
/** Models with a label of their own; the rest share one. */
export const modelLabelsMax = 100;

/** Teams with a label of their own; the rest share one. */
export const teamLabelsMax = 100;
/** The label of keys without a team. */
const noTeam = "none";

/** The label of requests that name no model. */
const noModel = "none";

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
