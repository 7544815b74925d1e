import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import type { Speed } from "./expected-time.ts";

/** The speeds of so many models on machines are remembered. */
export const speedsKeptMax = 10_000;
/** How much the latest answer counts against all those before it. */
const latestWeighs = 0.3;
/** A machine that nobody asked for this long is measured anew: what was slow may have been a model that was loaded. */
const measuredForMs = 600_000;
/** A machine's word about its own time is believed within this. */
const believedMsMax = 3_600_000;
const believedTokensMax = 10_000_000;

interface Measured extends Speed {
  firstTokenMs: number;
  restMs: number;
  answerTokens: number;
  atMs: number;
}

/** How fast each machine was lately with each model, by the ends of its answers. */
export class MeasuredSpeeds {
  /** By machine and by model, since a name for both would be made for each; where there are many, the latest are the last. */
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
    // Which one was measured last matters only where one may have to go soon.
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

  /** Of the machine that was measured the longest ago, the model that was. */
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
