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
  /** By machine and model; where there are many, what was measured last is the last. */
  readonly #speeds = new Map<string, Measured>();

  ended(machine: string, modelId: string, end: EndPayload, nowMs: number): void {
    const { queuedMs, firstTokenMs, totalMs } = end.timings;
    const workedMs = within(totalMs - queuedMs, believedMsMax);
    const toFirstMs =
      firstTokenMs === null ? workedMs : Math.min(within(firstTokenMs - queuedMs, believedMsMax), workedMs);
    const restMs = workedMs - toFirstMs;
    const answerTokens = within(end.usage?.completionTokens ?? 0, believedTokensMax);
    const key = keyOf(machine, modelId);
    const measured = this.#speeds.get(key);
    if (measured === undefined || isOver(measured, nowMs)) {
      this.#keep(key, { firstTokenMs: toFirstMs, restMs, answerTokens, atMs: nowMs });
      return;
    }
    measured.firstTokenMs = mean(measured.firstTokenMs, toFirstMs);
    measured.restMs = mean(measured.restMs, restMs);
    measured.answerTokens = mean(measured.answerTokens, answerTokens);
    measured.atMs = nowMs;
    // Which one was measured last matters only where one may have to go soon.
    if (this.#speeds.size > speedsKeptMax / 2) this.#keep(key, measured);
  }

  of(machine: string, modelId: string, nowMs: number): Speed | undefined {
    const measured = this.#speeds.get(keyOf(machine, modelId));
    return measured === undefined || isOver(measured, nowMs) ? undefined : measured;
  }

  get size(): number {
    return this.#speeds.size;
  }

  #keep(key: string, measured: Measured): void {
    this.#speeds.delete(key);
    this.#speeds.set(key, measured);
    for (const oldest of this.#speeds.keys()) {
      if (this.#speeds.size <= speedsKeptMax) return;
      this.#speeds.delete(oldest);
    }
  }
}

function isOver({ atMs }: Measured, nowMs: number): boolean {
  return nowMs - atMs > measuredForMs;
}

function mean(before: number, latest: number): number {
  return before + (latest - before) * latestWeighs;
}

/** Names of machines have no spaces. */
function keyOf(machine: string, modelId: string): string {
  return `${machine} ${modelId}`;
}

function within(number: number, max: number): number {
  return Number.isFinite(number) ? Math.min(max, Math.max(0, number)) : 0;
}
