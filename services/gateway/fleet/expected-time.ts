import type { Presence } from "#shared/protocol/presence.ts";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";

/** The recent speed of a machine with a model, as means that weigh the latest answers most. */
export interface Speed {
  /** Time from the start of a job to its first token. */
  readonly firstTokenMs: number;
  /** Time from the first token to the end of the job. */
  readonly restMs: number;
  /** Length of those answers, so that long answers do not make a machine seem slow; 0 if unknown. */
  readonly answerTokens: number;
}

/**
 * Limits the slots, and the queue places, that a gateway believes of a machine. A machine that reports more attracts no
 * more jobs.
 */
export const slotsBelievedMax = 1_024;

/** The load of a machine, as far as a gateway can know it. */
export interface Load {
  readonly slots: number;
  /** Jobs that run or wait there, including jobs placed since its last presence. */
  readonly occupied: number;
  readonly room: "slot" | "queue" | "none";
}

/**
 * Returns the load of a machine. `pending` counts the jobs that this gateway placed there since that presence, less
 * those that ended.
 */
export function loadOf({ running, queued, ...told }: Presence, pending: number): Load {
  const slots = Math.min(told.slots, slotsBelievedMax);
  const queueMax = Math.min(told.queueMax, slotsBelievedMax);
  const occupied = Math.max(0, running + queued + pending);
  const room = occupied < slots ? "slot" : occupied < slots + queueMax ? "queue" : "none";
  return { slots: Math.max(1, slots), occupied, room };
}

/**
 * Returns the expected time of one more job on each machine: in milliseconds, or as ratios if no machine was measured.
 * An unmeasured machine counts as fast as the fastest measured one. Otherwise it would never be measured.
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

/** Answers faster than this count as equally fast: a smaller difference is noise. */
const noticedMs = 250;

function serviceMs({ firstTokenMs, restMs, answerTokens }: Speed, usualTokens: number): number {
  return Math.max(noticedMs, firstTokenMs + (answerTokens === 0 ? restMs : (restMs / answerTokens) * usualTokens));
}

/**
 * Returns the busyness of a machine in jobs. A machine with several running jobs runs each more slowly. A machine
 * without a free slot has a queue.
 */
function busyness({ slots, occupied }: Load): number {
  return occupied < slots ? 1 + occupied / slots : 1 + (occupied - slots + 1) / slots;
}

const retryAfterSecondsMax = 60;

/**
 * Returns the expected seconds until one of these full machines has room for one more job, from 1 to 60. Undefined if
 * no machine was measured.
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

/** Limits the speeds that are remembered, one for each model on a machine. */
export const speedsKeptMax = 10_000;
/** Weight of the latest answer against all answers before it. */
const latestWeighs = 0.3;
/** A machine without an answer for this long is measured anew: a slow answer may have included loading the model. */
const measuredForMs = 600_000;
/** Limits the times that a gateway believes of a machine's end frame. */
const believedMsMax = 3_600_000;
const believedTokensMax = 10_000_000;

interface Measured extends Speed {
  firstTokenMs: number;
  restMs: number;
  answerTokens: number;
  atMs: number;
}

/** Keeps the recent speed of each machine with each model, from the ends of its answers. */
export class MeasuredSpeeds {
  /**
   * By machine, then by model: a joint key would have to be built for each lookup. With many entries the latest are
   * last.
   */
  readonly #speeds = new Map<string, Map<string, Measured>>();
  #size = 0;

  ended(machine: string, modelId: string, end: EndPayload, nowMs: number): void {
    const { queuedMs, firstTokenMs, totalMs } = end.timings;
    const workedMs = within(totalMs - queuedMs, believedMsMax);
    const toFirstMs =
      firstTokenMs === null ? workedMs : Math.min(within(firstTokenMs - queuedMs, believedMsMax), workedMs);
    const restMs = workedMs - toFirstMs;
    const answerTokens = within(end.usage?.completionTokens ?? 0, believedTokensMax);
    const measured = this.#speeds.get(machine)?.get(modelId);
    if (measured === undefined || isOver(measured, nowMs)) {
      this.#keep(machine, modelId, { firstTokenMs: toFirstMs, restMs, answerTokens, atMs: nowMs });
      return;
    }
    measured.firstTokenMs = mean(measured.firstTokenMs, toFirstMs);
    measured.restMs = mean(measured.restMs, restMs);
    measured.answerTokens = mean(measured.answerTokens, answerTokens);
    measured.atMs = nowMs;
    // The order of measuring matters only when an entry may be dropped soon.
    if (this.#size > speedsKeptMax / 2) this.#keep(machine, modelId, measured);
  }

  of(machine: string, modelId: string, nowMs: number): Speed | undefined {
    const measured = this.#speeds.get(machine)?.get(modelId);
    return measured === undefined || isOver(measured, nowMs) ? undefined : measured;
  }

  get size(): number {
    return this.#size;
  }

  #keep(machine: string, modelId: string, measured: Measured): void {
    const ofMachine = this.#speeds.get(machine) ?? new Map<string, Measured>();
    this.#speeds.delete(machine);
    this.#speeds.set(machine, ofMachine);
    if (!ofMachine.delete(modelId)) this.#size += 1;
    ofMachine.set(modelId, measured);
    if (this.#size > speedsKeptMax) this.#forgetOldest();
  }

  /** Drops the oldest model of the machine that was measured the longest ago. */
  #forgetOldest(): void {
    for (const [machine, ofMachine] of this.#speeds) {
      for (const oldest of ofMachine.keys()) {
        ofMachine.delete(oldest);
        this.#size -= 1;
        if (ofMachine.size === 0) this.#speeds.delete(machine);
        return;
      }
    }
  }
}

function isOver({ atMs }: Measured, nowMs: number): boolean {
  return nowMs - atMs > measuredForMs;
}

function mean(before: number, latest: number): number {
  return before + (latest - before) * latestWeighs;
}

function within(number: number, max: number): number {
  return Number.isFinite(number) ? Math.min(max, Math.max(0, number)) : 0;
}
