import type { Presence } from "#shared/protocol/presence.ts";
import type { ModelLoad } from "./load-cost.ts";
import { type MeasuredSpeed, median, type Speed } from "./measured-speeds.ts";

/**
 * Limits the slots, and the queue places, that a gateway believes of a machine. A machine that reports more attracts no
 * more jobs.
 */
export const slotsBelievedMax = 1_024;

/** The jobs on a machine that a gateway knows of. */
export interface KnownLoad {
  readonly jobs: number;
  /** Tokens of prompts that were placed there and are not computed yet. */
  readonly backlogTokens: number;
}

/** The load of a machine, as far as a gateway can know it. */
export interface Load {
  readonly slots: number;
  /** Jobs that run or wait there. */
  readonly occupied: number;
  /** Tokens of prompts that were placed there and are not computed yet. */
  readonly backlogTokens: number;
  readonly room: "slot" | "queue" | "none";
}

/** Returns the load of a machine with these known jobs. */
export function loadOf(claimed: Pick<Presence, "slots" | "queueMax">, { jobs, backlogTokens }: KnownLoad): Load {
  const slots = Math.min(claimed.slots, slotsBelievedMax);
  const queueMax = Math.min(claimed.queueMax, slotsBelievedMax);
  const room = jobs < slots ? "slot" : jobs < slots + queueMax ? "queue" : "none";
  return { slots: Math.max(1, slots), occupied: jobs, backlogTokens, room };
}

/** The work of one request on a machine, in tokens. */
export interface Work {
  readonly promptTokens: number;
  /** The part of the prompt that the machine is expected to have cached. */
  readonly cachedTokens: number;
  readonly answerTokens: number;
  /** The load of the model, if it is not in memory there. */
  readonly load?: ModelLoad | undefined;
}

/** The expected cost of one request on a machine, in milliseconds of its client's and of others. */
export interface Cost {
  /** Time until the model is in memory. */
  readonly loadMs: number;
  /** Time until a slot is free. */
  readonly slotMs: number;
  /** Time for the prompts that were placed there before. */
  readonly backlogMs: number;
  /** Time for the part of the prompt that is not cached, and for the way to the machine. */
  readonly promptMs: number;
  /** Time that the cached part of the prompt saves. It is no part of `totalMs`. */
  readonly savedMs: number;
  readonly answerMs: number;
  /** Time by which the answers there are halted and slowed. */
  readonly delayMs: number;
  /** The cost by which machines are compared. */
  readonly totalMs: number;
}

/** The weight of time after the first token. Clients wait for the first token, and read while the others come. */
const answerWeighs = 0.1;

/** The speed of all machines while none was measured. It decides nothing, since it is the same for all. */
export const unmeasured: Speed = { beginMs: 0, promptTokenMs: 0.5, tokenMs: 20, jobTokenMs: 0.5, answerMs: 4_000 };

/** Returns the tokens of the prompt that the machine has to compute: at least the last one. */
export function uncachedTokens({ promptTokens, cachedTokens }: Pick<Work, "promptTokens" | "cachedTokens">): number {
  return Math.max(1, promptTokens - cachedTokens);
}

export function expectedCost(
  work: Work,
  { slots, occupied, backlogTokens }: Load,
  { beginMs, promptTokenMs, tokenMs, jobTokenMs, answerMs: usualAnswerMs }: Speed,
): Cost {
  const { answerTokens } = work;
  const running = Math.min(slots, occupied);
  const batch = Math.min(slots, occupied + 1);
  const computedTokens = uncachedTokens(work);
  const computedMs = computedTokens * promptTokenMs;
  const savedMs = Math.max(0, work.promptTokens - computedTokens) * promptTokenMs;
  const promptMs = beginMs + computedMs;
  const backlogMs = backlogTokens * promptTokenMs;
  const answerMs = answerTokens * (tokenMs + jobTokenMs * (batch - 1));
  const slotMs = occupied < slots ? 0 : ((occupied - slots + 1) * (promptMs + usualAnswerMs)) / slots;
  // A prompt halts all answers there. Answers that run there are half done, so this one slows their other halves.
  const haltedMs = running * computedMs;
  const slowedMs = (running * jobTokenMs * answerTokens) / 2;
  const loadMs = work.load?.ms ?? 0;
  // A load takes memory from other models, which others then wait for.
  const returnMs = work.load?.returnMs ?? 0;
  const delayMs = haltedMs + slowedMs + returnMs;
  const waitMs = loadMs + slotMs + backlogMs + promptMs;
  const totalMs = waitMs + haltedMs + returnMs + answerWeighs * (answerMs + slowedMs);
  return { loadMs, slotMs, backlogMs, promptMs, savedMs, answerMs, delayMs, totalMs };
}

/** Returns the expected time until the first token of the answer. */
export function firstTokenMs({ loadMs, slotMs, backlogMs, promptMs }: Cost): number {
  return loadMs + slotMs + backlogMs + promptMs;
}

/** Returns the speed that a machine is expected to have before it is measured: the middle one of the others. */
export function usualSpeed(speeds: readonly (MeasuredSpeed | undefined)[]): Speed {
  const middle = (key: keyof Speed): number => {
    const known: number[] = [];
    for (const speed of speeds) if (speed?.[key] !== undefined) known.push(speed[key]);
    return median(known) ?? unmeasured[key];
  };
  return {
    beginMs: middle("beginMs"),
    promptTokenMs: middle("promptTokenMs"),
    tokenMs: middle("tokenMs"),
    jobTokenMs: middle("jobTokenMs"),
    answerMs: middle("answerMs"),
  };
}

const retryAfterSecondsMax = 60;

/**
 * Returns the expected seconds until one of these full machines has room for one more job, from 1 to 60. Undefined if
 * no machine was measured.
 */
export function secondsUntilRoom(
  machines: readonly { readonly load: Load; readonly speed: MeasuredSpeed | undefined }[],
): number | undefined {
  let endsPerMs = 0;
  for (const { load, speed } of machines) {
    if (speed?.answerMs !== undefined) endsPerMs += load.slots / Math.max(1, speed.beginMs + speed.answerMs);
  }
  if (endsPerMs === 0) return undefined;
  return Math.min(retryAfterSecondsMax, Math.max(1, Math.ceil(1 / endsPerMs / 1_000)));
}
