import type { Clock } from "#shared/process/clock.ts";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import type { Needs } from "./choose-machine.ts";
import type { CountedPrompts } from "./counted-prompts.ts";
import { expectedCost, type Load, uncachedTokens, type Work } from "./expected-cost.ts";
import type { Expected, MachineCaches } from "./machine-caches.ts";
import type { MeasuredSpeeds, Speed } from "./measured-speeds.ts";
import type { OpenLoad } from "./placed-loads.ts";
import { blockBytes } from "./prompt-blocks.ts";
import type { Target } from "../fleet/roster.ts";

/** A job at the moment when it is placed. */
export interface Placing {
  readonly target: Target;
  readonly model: string;
  readonly needs: Needs;
  readonly work: Work;
  readonly expected: Expected;
  /** The load of the machine without this job. */
  readonly load: Load;
  readonly speed: Speed;
  /** True if the answer comes in one piece, so that its first token cannot be seen. */
  readonly whole: boolean;
  /** True if the model was not in memory, so that its load is a part of the time to the first token. */
  readonly isCold: boolean;
}

/** The memories that a job adds to. */
interface Memories {
  readonly load: OpenLoad;
  /** Returns the number of jobs on the machine, counting this one. */
  readonly running: () => number;
  /** Called once, when the machine has the job. */
  readonly accepted: () => void;
  readonly caches: MachineCaches;
  readonly speeds: MeasuredSpeeds;
  readonly counts: CountedPrompts;
  readonly clock: Pick<Clock, "now">;
}

/** The end of a job that did not fail. */
export interface JobEnd {
  readonly end: EndPayload;
  /** Length of the answer. */
  readonly receivedBytes: number;
  /** True if the machine had to wait because the client read too slowly. */
  readonly heldBack?: boolean | undefined;
}

/** Limits how far a machine's count of a prompt may lie from the gateway's estimate, to be remembered. */
const countedTimesMax = 4;
/** Tokens that templates may add to a prompt, however short it is. */
const templateTokensMax = 1_000;

/**
 * Follows a job of this gateway on its machine. The gateway measures by it how fast the machine is, what the machine has
 * cached, and how long prompts and answers are.
 */
export class PlacedJob {
  readonly #memories: Memories;
  readonly #placing: Placing;
  readonly #placedAtMs: number;
  #isAccepted = false;
  #begunAtMs: number | undefined;

  constructor(placing: Placing, memories: Memories) {
    this.#placing = placing;
    this.#memories = memories;
    this.#placedAtMs = memories.clock.now();
  }

  accepted(): void {
    if (this.#isAccepted) return;
    this.#isAccepted = true;
    this.#memories.load.accepted();
    this.#memories.accepted();
  }

  /** Called when the machine has begun to answer. Of an answer in one piece, the gateway learns that from beats. */
  answering(): void {
    this.#memories.load.begun();
    if (!this.#placing.whole) this.#begunAtMs ??= this.#memories.clock.now();
  }

  /** Called once. The end is undefined for a job that failed. */
  ended(ended?: JobEnd): void {
    this.#memories.load.ended();
    if (ended === undefined) return;
    const { target, model, needs, work, expected, load } = this.#placing;
    const { prompt, promptTokens: estimated = 0, answers = 1 } = needs;
    const { caches, counts, speeds } = this.#memories;
    const { promptTokens = 0, completionTokens = 0, cachedTokens } = ended.end.usage ?? {};
    // A token has three bytes or more. A machine seems no faster by claiming more tokens than it sent.
    const tokens = Math.min(completionTokens, ended.receivedBytes / 3) / answers;
    // A machine that claims more cached tokens than were expected seems slower by it, and never faster.
    const reported = cachedTokens === undefined ? Infinity : Math.max(1, promptTokens - cachedTokens);
    this.#noteTimes(ended, { tokens, computed: Math.min(uncachedTokens(work), reported) });
    speeds.counted(model, { answer: tokens, prompt: promptTokens, estimated });
    if (prompt === undefined || promptTokens === 0) return;
    const isNear =
      promptTokens <= countedTimesMax * estimated + templateTokensMax && promptTokens >= estimated / countedTimesMax;
    if (isNear) counts.counted(prompt, model, promptTokens);
    // A prompt behind others may have been computed before the one that it shares a beginning with.
    if (cachedTokens === undefined || load.backlogTokens > 0 || load.room !== "slot") return;
    caches.proved(target, expected, ((cachedTokens / promptTokens) * prompt.bytes) / blockBytes);
  }

  #noteTimes(
    { heldBack = false }: JobEnd,
    { tokens, computed }: { readonly tokens: number; readonly computed: number },
  ): void {
    const { target, model, load, work, speed, isCold } = this.#placing;
    const { speeds, running: runningNow, clock } = this.#memories;
    const nowMs = clock.now();
    const isSlotFree = load.room === "slot";
    let firstMs = (this.#begunAtMs ?? nowMs) - this.#placedAtMs;
    let answerMs = nowMs - (this.#begunAtMs ?? nowMs);
    if (this.#begunAtMs === undefined) {
      if (!isSlotFree || isCold) return;
      // The time of an answer in one piece is divided as it was expected to be.
      const cost = expectedCost({ ...work, answerTokens: tokens }, load, speed);
      answerMs = (firstMs * cost.answerMs) / Math.max(1, cost.backlogMs + cost.promptMs + cost.answerMs);
      firstMs -= answerMs;
    }
    // A job that waited for a slot or for its model tells nothing about the computation of its prompt.
    if (isSlotFree && !isCold)
      speeds.begun(target.machine, model, { promptTokens: load.backlogTokens + computed, ms: firstMs }, nowMs);
    if (heldBack) return;
    const { slots } = load;
    const running = (Math.min(slots, load.occupied + 1) + Math.min(slots, runningNow())) / 2;
    speeds.answered(target.machine, model, { running, tokens, ms: answerMs }, nowMs);
  }
}
