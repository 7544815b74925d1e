/**
 * Every time of the wire, in milliseconds. `scale` shrinks them all alike for tests; processes that talk to each other
 * must run at the same scale, so it travels in presence and a gateway leaves out a machine whose scale is another.
 */
export function timingAt(scale: number, chosen: ChosenWaits = {}): Timing {
  return {
    scale,

    presenceIntervalMs: 1_000 * scale,
    suspectAfterMs: 2_000 * scale,
    offlineAfterMs: 3_000 * scale,
    rollcallSettleMs: 250 * scale,
    claimWaitMs: 300 * scale,
    readinessGraceMs: 2_000 * scale,

    acceptWaitMs: 300 * scale,
    acceptHoldMs: 10 * scale,
    retryAfterNobodyMs: 50 * scale,
    probeAfterMs: 1_500 * scale,
    lostAfterMs: 3_000 * scale,
    parkRetryMs: 250 * scale,
    partRepeatMs: 1_000 * scale,
    partsWaitMs: 10_000 * scale,

    beatIntervalMs: 500 * scale,
    terminalRepeatMs: 500 * scale,
    terminalRepeatForMs: 10_000 * scale,
    cancelRememberMs: 10_000 * scale,
    leaseIntervalMs: 1_000 * scale,
    gatewayGoneAfterMs: 3_000 * scale,
    cutOffAfterMs: 9_000 * scale,

    noProgressMs: chosen.noProgressMs ?? 60_000 * scale,
    firstTokenMs: chosen.firstTokenMs ?? 300_000 * scale,
    jobTotalMs: chosen.jobTotalMs ?? 600_000 * scale,
    manageSilentMs: 1_800_000 * scale,

    modelsWaitMs: 900 * scale,
    modelsShareMs: 250 * scale,
    catalogueWaitMs: 2_000 * scale,
    cataloguePollMs: 1_000 * scale,
    runtimeAnswerMs: 700 * scale,
    straysWaitMs: 5_000 * scale,

    breakerOpenMs: 30_000 * scale,
    deadlyRememberMs: 300_000 * scale,

    clientStallMs: 30_000 * scale,
    statusHeldMs: 5_000 * scale,
    commentIntervalMs: 10_000 * scale,
    newsIntervalMs: 1_000 * scale,
  };
}

/** The waits for a model that operators may choose for themselves: hardware and models differ more than networks do. */
interface ChosenWaits {
  readonly noProgressMs?: number | undefined;
  readonly firstTokenMs?: number | undefined;
  readonly jobTotalMs?: number | undefined;
}

export interface Timing {
  readonly scale: number;

  /** How often an agent says that it lives, and when silence makes a gateway doubt it and then leave it out. */
  readonly presenceIntervalMs: number;
  readonly suspectAfterMs: number;
  readonly offlineAfterMs: number;
  /** How long a gateway that starts waits for answers to its rollcall before it calls itself ready. */
  readonly rollcallSettleMs: number;
  /** How long an agent that starts waits for another one of its name to say that it is there. */
  readonly claimWaitMs: number;
  /** How long a gateway that is told to stop goes on serving after it said that it is not ready. */
  readonly readinessGraceMs: number;

  /** An agent accepts or rejects within this; after it the gateway sends the same job once more. */
  readonly acceptWaitMs: number;
  /** An agent waits so long, and twice as long at most, for something to say of a job before it says that it has it. */
  readonly acceptHoldMs: number;
  /** How long after «nobody there» a gateway asks a machine once more whose presence is fresh. */
  readonly retryAfterNobodyMs: number;
  /** A job that is silent for this long is probed, and for that long is lost: a freeze of two seconds survives. */
  readonly probeAfterMs: number;
  readonly lostAfterMs: number;
  readonly parkRetryMs: number;
  /** A part whose acknowledgement does not come within this is sent again. */
  readonly partRepeatMs: number;
  /** A body whose next part does not come within this is given up. */
  readonly partsWaitMs: number;

  readonly beatIntervalMs: number;
  readonly terminalRepeatMs: number;
  readonly terminalRepeatForMs: number;
  /** A cancel is remembered for this long, to beat a job or a part that comes late. */
  readonly cancelRememberMs: number;
  /** How often a gateway tells a machine that holds its jobs that it lives. */
  readonly leaseIntervalMs: number;
  /** Without a lease for this long, or with beats that found nobody for as long, a gateway is gone and its jobs end. */
  readonly gatewayGoneAfterMs: number;
  /** For how long either side keeps its jobs while it is cut off itself: brokers restart, and the other goes on. */
  readonly cutOffAfterMs: number;

  /** A runtime that shows no progress for this long is hung; before the first token it has longer. */
  readonly noProgressMs: number;
  readonly firstTokenMs: number;
  readonly jobTotalMs: number;
  /** How long nothing may be heard of a model that is pulled, removed, loaded or unloaded: checking one takes minutes. */
  readonly manageSilentMs: number;

  /** How long `GET /v1/models` waits for machines, and for how long callers share one round of asking. */
  readonly modelsWaitMs: number;
  readonly modelsShareMs: number;
  /** How long a gateway waits for a catalogue that it fetches for itself. */
  readonly catalogueWaitMs: number;
  readonly cataloguePollMs: number;
  readonly runtimeAnswerMs: number;
  /** How long a runtime may go on with a cancelled request before that is told. */
  readonly straysWaitMs: number;

  /** For how long a model of a machine that fails all the time is asked last. */
  readonly breakerOpenMs: number;
  /** For how long a request is remembered under which runtimes died. */
  readonly deadlyRememberMs: number;

  /** A client that takes nothing of what waits for it for this long is cut off. */
  readonly clientStallMs: number;
  /** For how long an accepted stream holds its status line back, and how often it comments on its waiting. */
  readonly statusHeldMs: number;
  readonly commentIntervalMs: number;
  /** What it waits for is told sooner when that has changed, but no sooner than this after the last comment. */
  readonly newsIntervalMs: number;
}
