import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import type { Speed } from "./expected-time.ts";

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
