/**
 * Returns all times of the wire, in milliseconds. `scale` multiplies them for tests. Processes that talk to each other
 * must run at the same scale. Presence carries it, and a gateway leaves out a machine with another scale.
 */
export function timingAt(scale: number, chosen: ChosenWaits = {}) {
  return {
    scale,

    /** Interval of presence, and the silence after which a gateway suspects a machine and then counts it as offline. */
    presenceIntervalMs: 1_000 * scale,
    suspectAfterMs: 2_000 * scale,
    offlineAfterMs: 3_000 * scale,
    /**
     * Time by which both ends of a tunnel believe in each other for longer. TCP repeats a lost packet after 0.2, 0.6, 1.4
     * and 3 s, so a line that loses every packet for 2.8 s carries the next sign of life before both times are over.
     */
    tunnelSilenceMs: 1_300 * scale,
    /**
     * Time for which a renamed machine works on under its old name too, and, a little shorter, for which its agent finishes
     * what it has there.
     */
    renamedWorksMs: 30_000 * scale,
    renamedFinishesMs: 28_000 * scale,
    /** Time that a starting gateway waits for answers to its rollcall before it reports ready. */
    rollcallSettleMs: 250 * scale,
    /** Time that a starting agent waits for another agent of its name to answer. */
    claimWaitMs: 300 * scale,
    /** Time that a stopping gateway keeps serving after it reported not ready. */
    readinessGraceMs: 2_000 * scale,

    /** Time for which a gateway gathers its placements before it tells the other gateways. */
    placementsToldMs: 25 * scale,
    /** Interval at which a gateway repeats its loads, and the silence after which the others forget them. */
    placementsRepeatMs: 1_000 * scale,
    placementsSilentMs: 3_000 * scale,

    /** Timeout of an accept or a reject. After it the gateway sends the same job once more. */
    acceptWaitMs: 300 * scale,
    /** Time that an agent delays an accept: any other frame of the job within it makes the accept unnecessary. */
    acceptHoldMs: 15 * scale,
    /** Delay of the second offer to a machine with a fresh presence, after a 503 (no responders). */
    retryAfterNobodyMs: 50 * scale,
    /** Silence after which a job is probed, and after which it counts as lost. A pause of two seconds survives. */
    probeAfterMs: 1_500 * scale,
    lostAfterMs: 3_000 * scale,
    parkRetryMs: 250 * scale,
    /** Timeout of a part's acknowledgement. After it the part is sent again. */
    partRepeatMs: 1_000 * scale,
    /** Timeout of a body's next part. After it the agent gives the job up. */
    partsWaitMs: 10_000 * scale,

    beatIntervalMs: 500 * scale,
    terminalRepeatMs: 500 * scale,
    terminalRepeatForMs: 10_000 * scale,
    /** Time that an agent remembers a cancel, so that it still stops a job or a part that arrives late. */
    cancelRememberMs: 10_000 * scale,
    /** Interval of the leases that a gateway sends to each machine that holds its jobs. */
    leaseIntervalMs: 1_000 * scale,
    /**
     * A gateway counts as gone after this long without a lease, or with beats that found no subscriber. Its jobs then
     * end.
     */
    gatewayGoneAfterMs: 3_000 * scale,
    /** Time that a disconnected gateway or agent keeps its jobs: a broker may restart, and the other side goes on. */
    cutOffAfterMs: 9_000 * scale,

    /** A runtime without progress for this long counts as hung. Before the first token `firstTokenMs` applies. */
    noProgressMs: chosen.noProgressMs ?? 60_000 * scale,
    firstTokenMs: chosen.firstTokenMs ?? 300_000 * scale,
    /** Time that a request waits for its model to come into memory, where the agent decides what is loaded. */
    loadWaitMs: chosen.loadWaitMs ?? chosen.firstTokenMs ?? 300_000 * scale,
    jobTotalMs: chosen.jobTotalMs ?? 600_000 * scale,
    /** Allowed silence while a model is pulled, removed, loaded or unloaded: checking a model takes minutes. */
    manageSilentMs: 1_800_000 * scale,

    /** Time that `GET /v1/models` waits for machines, and time within which callers share one round of requests. */
    modelsWaitMs: 900 * scale,
    modelsShareMs: 250 * scale,
    /** Time that a gateway waits for a machine to count the tokens of a prompt, before it estimates them. */
    countWaitMs: 5_000 * scale,
    /** Time that a gateway waits for a catalogue that it fetches for its own use. */
    catalogueWaitMs: 2_000 * scale,
    /** The interval at which one gateway looks which models machines are to keep. */
    keepIntervalMs: 1_500 * scale,
    /** The interval at which one gateway looks what is wrong with the site, and after which another one does in its place. */
    alertIntervalMs: 10_000 * scale,
    alertLeaseMs: 35_000 * scale,
    cataloguePollMs: 1_000 * scale,
    runtimeAnswerMs: 700 * scale,
    /**
     * A runtime counts as dead after this long without an answer to a check or to any job. A model list may take as long.
     */
    runtimeSilentMs: 10_000 * scale,
    /** Time that a runtime may go on with a cancelled request before the agent reports it as a stray. */
    straysWaitMs: 5_000 * scale,

    /** Time that a machine with a constantly failing model ranks last for that model. */
    breakerOpenMs: 30_000 * scale,
    /** Time that a gateway remembers a request that killed runtimes. */
    deadlyRememberMs: 300_000 * scale,

    /** Time for which a resumable answer without a client goes on, and is kept after its end. */
    resumableForMs: 120_000 * scale,
    /** Time for which an answer that is made once goes on without its client, and for which a repeat waits for it. */
    onceForMs: 10_000 * scale,
    /** A client that reads nothing of its pending answer for this long is disconnected. */
    clientStallMs: 30_000 * scale,
    /** Time that an accepted stream delays its status line, and the interval of its comments while it waits. */
    statusHeldMs: 5_000 * scale,
    commentIntervalMs: 10_000 * scale,
    /** Minimum gap between comments: a stream whose reason to wait has changed comments earlier, but not within this. */
    newsIntervalMs: 1_000 * scale,
    /** Interval of the comments of a stream that waits for the load of its model, also if the load is no further. */
    loadNewsIntervalMs: 2_000 * scale,
  };
}
export type Timing = Readonly<ReturnType<typeof timingAt>>;

/** The line between two ends of the wire, as far as waits depend on it. A presence is one. */
export interface Line {
  readonly roundTripMs?: number | undefined;
  readonly tunnelled?: boolean | undefined;
}

/** Time by which an end of this line may be silent for longer before the other end takes it for gone. */
export function addedSilenceMs({ roundTripMs = 0, tunnelled = false }: Line, timing: Timing): number {
  return roundTripMs + (tunnelled ? timing.tunnelSilenceMs : 0);
}

/** Extends the waits for a machine's answer by its line. */
export function timingOver(timing: Timing, line: Line): Timing {
  const { roundTripMs = 0 } = line;
  const addedMs = addedSilenceMs(line, timing);
  if (addedMs === 0) return timing;
  return {
    ...timing,
    acceptWaitMs: timing.acceptWaitMs + roundTripMs,
    probeAfterMs: timing.probeAfterMs + roundTripMs,
    lostAfterMs: timing.lostAfterMs + addedMs,
    parkRetryMs: timing.parkRetryMs + roundTripMs,
    partRepeatMs: timing.partRepeatMs + roundTripMs,
  };
}

/** Waits for a model that operators may configure: hardware and models differ more than networks do. */
interface ChosenWaits {
  readonly noProgressMs?: number | undefined;
  readonly firstTokenMs?: number | undefined;
  readonly loadWaitMs?: number | undefined;
  readonly jobTotalMs?: number | undefined;
}
