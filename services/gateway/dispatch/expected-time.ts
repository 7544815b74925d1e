import type { Presence } from "#shared/protocol/presence.ts";

/** How fast a machine was lately with a model, in means that weigh the latest answers most. */
export interface Speed {
  /** From the start of a job to its first token. */
  readonly firstTokenMs: number;
  /** From there to its end. */
  readonly restMs: number;
  /** How long those answers were, so that a machine is not slow for what it was asked; 0 where that is not known. */
  readonly answerTokens: number;
}

/** What a machine is busy with, as far as a gateway can know. */
export interface Load {
  readonly slots: number;
  /** Jobs that run or wait there, those included that came after its last presence. */
  readonly occupied: number;
  readonly room: "slot" | "queue" | "none";
}

/** `pending` is what this gateway placed there since that presence, less what has ended. */
export function loadOf({ slots, running, queued, queueMax }: Presence, pending: number): Load {
  const occupied = Math.max(0, running + queued + pending);
  const room = occupied < slots ? "slot" : occupied < slots + queueMax ? "queue" : "none";
  return { slots: Math.max(1, slots), occupied, room };
}

/**
 * How long each of these machines would take for one more job, in milliseconds, or as ratios when none was measured. A
 * machine that was not measured yet is taken to be as fast as the fastest that was: else it would never be.
 */
export function expectedTimes(
  machines: readonly { readonly load: Load; readonly speed: Speed | undefined }[],
): readonly number[] {
  let tokens = 0;
  let measured = 0;
  for (const { speed } of machines) {
    if (speed === undefined || speed.answerTokens === 0) continue;
    tokens += speed.answerTokens;
    measured += 1;
  }
  const usualTokens = tokens / Math.max(1, measured);
  const services = machines.map(({ speed }) => speed && serviceMs(speed, usualTokens));
  const fastestMs = services.reduce<number>((least, each = Infinity) => Math.min(least, each), Infinity);
  const unmeasuredMs = Number.isFinite(fastestMs) ? fastestMs : 1;
  return machines.map(({ load }, place) => (services[place] ?? unmeasuredMs) * busyness(load));
}

/** Answers that are all sooner than this are as fast as each other: what differs is noise. */
const noticedMs = 250;

function serviceMs({ firstTokenMs, restMs, answerTokens }: Speed, usualTokens: number): number {
  return Math.max(noticedMs, firstTokenMs + (answerTokens === 0 ? restMs : (restMs / answerTokens) * usualTokens));
}

/** In jobs: a machine that runs several at once does each more slowly, and one without a free slot has a queue. */
function busyness({ slots, occupied }: Load): number {
  return occupied < slots ? 1 + occupied / slots : 1 + (occupied - slots + 1) / slots;
}

const retryAfterSecondsMax = 60;

/**
 * In how many seconds one of these machines, which are all full, is expected to have room for one more job, from 1 to
 * 60; nothing when none of them was measured.
 */
export function secondsUntilRoom(
  machines: readonly { readonly load: Load; readonly speed: Speed | undefined }[],
): number | undefined {
  let endsPerMs = 0;
  for (const { load, speed } of machines) {
    if (speed !== undefined) endsPerMs += load.slots / Math.max(1, speed.firstTokenMs + speed.restMs);
  }
  if (endsPerMs === 0) return undefined;
  return Math.min(retryAfterSecondsMax, Math.max(1, Math.ceil(1 / endsPerMs / 1_000)));
}
