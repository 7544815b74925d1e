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
  readonly atMs: number;
}

/** How fast each machine was lately with each model, by the ends of its answers. */
export class MeasuredSpeeds {
  /** By machine and model; what was measured last is the last. */
  readonly #speeds = new Map<string, Measured>();

  ended(machine: string, modelId: string, end: EndPayload, nowMs: number): void {
    const { queuedMs, firstTokenMs, totalMs } = end.timings;
    const workedMs = within(totalMs - queuedMs, believedMsMax);
    const toFirstMs =
      firstTokenMs === null ? workedMs : Math.min(within(firstTokenMs - queuedMs, believedMsMax), workedMs);
    const latest = {
      firstTokenMs: toFirstMs,
      restMs: workedMs - toFirstMs,
      answerTokens: within(end.usage?.completionTokens ?? 0, believedTokensMax),
    };
    const key = keyOf(machine, modelId);
    const before = this.of(machine, modelId, nowMs);
    const speed = before === undefined ? latest : mean(before, latest);
    this.#speeds.delete(key);
    this.#speeds.set(key, { ...speed, atMs: nowMs });
    for (const oldest of this.#speeds.keys()) {
      if (this.#speeds.size <= speedsKeptMax) return;
      this.#speeds.delete(oldest);
    }
  }

  of(machine: string, modelId: string, nowMs: number): Speed | undefined {
    const measured = this.#speeds.get(keyOf(machine, modelId));
    return measured === undefined || nowMs - measured.atMs > measuredForMs ? undefined : measured;
  }

  get size(): number {
    return this.#speeds.size;
  }
}

function mean(before: Speed, latest: Speed): Speed {
  const of = (one: number, other: number): number => one + (other - one) * latestWeighs;
  return {
    firstTokenMs: of(before.firstTokenMs, latest.firstTokenMs),
    restMs: of(before.restMs, latest.restMs),
    answerTokens: of(before.answerTokens, latest.answerTokens),
  };
}

/** Names of machines have no spaces. */
function keyOf(machine: string, modelId: string): string {
  return `${machine} ${modelId}`;
}

function within(number: number, max: number): number {
  return Number.isFinite(number) ? Math.min(max, Math.max(0, number)) : 0;
}
