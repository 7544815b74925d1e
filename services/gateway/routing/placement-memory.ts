import type { Clock } from "#shared/process/clock.ts";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import type { Needs } from "./choose-machine.ts";
import { CountedPrompts } from "./counted-prompts.ts";
import { expectedCost, type Load, loadOf, uncachedTokens, unmeasured, type Work } from "./expected-cost.ts";
import { type Expected, MachineCaches, nothingExpected } from "./machine-caches.ts";
import { MeasuredSpeeds, type Speed } from "./measured-speeds.ts";
import { type OpenLoad, type PlacedLoad, PlacedLoads } from "./placed-loads.ts";
import { blockBytes, saltOf } from "./prompt-blocks.ts";
import type { Target } from "../fleet/roster.ts";

/** A prompt that a gateway placed on a machine, as hashes of its blocks. */
export interface PlacedPrompt extends Target {
  /** Separates the prompts of different models and keys; an int32. */
  readonly salt: number;
  readonly blocks: Int32Array;
}

/** The news of a gateway: all of its present loads, and the prompts that it placed since it last told. */
export interface Placements {
  readonly loads: readonly PlacedLoad[];
  readonly prompts: readonly PlacedPrompt[];
}

/** A model's request, as far as its place matters. */
export interface PlacementNeed {
  readonly modelId: string;
  readonly needs: Needs;
}

/** How a job is placed: the machine's slots, the context window of the model there, and how its answer comes. */
interface PlacedHow {
  readonly asked: PlacementNeed;
  readonly slots: number;
  readonly window: number;
  /** True if the answer comes in one piece, so that its first token cannot be seen. */
  readonly whole: boolean;
  /** True if the model was not in memory, so that its load is a part of the time to the first token. */
  readonly isCold: boolean;
}

/** Characters of a token, as most prompts have them. */
const charactersPerToken = 4;
/** Limits the prompts that wait to be told to other gateways. The oldest is dropped: it costs them only time. */
export const untoldPromptsMax = 1_000;

/** Remembers what this gateway and others placed on machines, and what this gateway measured there. */
export class PlacementMemory {
  readonly clock: Pick<Clock, "now">;
  readonly speeds = new MeasuredSpeeds();
  readonly caches = new MachineCaches();
  readonly counts = new CountedPrompts();
  readonly openLoads: PlacedLoads;
  readonly #untold: PlacedPrompt[] = [];
  #changed: (() => void) | undefined;

  constructor(clock: Pick<Clock, "now">) {
    this.clock = clock;
    this.openLoads = new PlacedLoads(clock, () => this.#changed?.());
  }

  /** Returns the work of a request, none of it cached. */
  workOf({ modelId, needs }: PlacementNeed): Work {
    const { promptTokens = 0, workTokens = promptTokens, answerTokensMax = Infinity } = needs;
    const answerTokens = Math.min(this.speeds.answerTokens(modelId), answerTokensMax);
    return { promptTokens: workTokens * this.speeds.ratio(modelId), cachedTokens: 0, answerTokens };
  }

  /** Returns the work of a request on a machine, and how much of its prompt the machine is expected to have cached. */
  workOn(target: Target, asked: PlacementNeed): { readonly work: Work; readonly expected: Expected } {
    const { modelId, needs } = asked;
    const { prompt } = needs;
    const work = this.workOf(asked);
    if (prompt === undefined) return { work, expected: nothingExpected };
    const expected = this.caches.expected(target, prompt, saltOf(modelId, prompt.keyId), this.clock.now());
    const share = Math.min(1, (expected.blocks * blockBytes) / Math.max(1, prompt.bytes));
    return { work: { ...work, cachedTokens: work.promptTokens * share }, expected };
  }

  /** Returns those of the machines that are expected to have most of a prompt cached. */
  warmest(
    { modelId, needs: { prompt } }: PlacementNeed,
    machines: readonly string[],
    count: number,
  ): readonly string[] {
    if (prompt === undefined) return [];
    return this.caches.warmest(machines, { prompt, salt: saltOf(modelId, prompt.keyId), count }, this.clock.now());
  }

  /** Follows a job that goes to a machine. */
  placed({ machine, epoch }: Target, how: PlacedHow): PlacedJob {
    const target = { machine, epoch };
    const { asked, slots } = how;
    const { work, expected } = this.workOn(target, asked);
    const load = loadOf({ slots, queueMax: 0 }, this.openLoads.of(target));
    const speed = { ...unmeasured, ...this.speeds.of(machine, asked.modelId, this.clock.now()) };
    return new PlacedJob({ ...how, target, work, expected, load, speed }, this);
  }

  /** Notes a prompt that a machine accepted, as far as its window holds it. */
  notePrompt(target: Target, { modelId, needs: { prompt } }: PlacementNeed, window: number): void {
    if (prompt === undefined || prompt.blocks.length === 0) return;
    const blocks = prompt.blocks.subarray(0, Math.ceil((window * charactersPerToken) / blockBytes));
    const placed: PlacedPrompt = { ...target, salt: saltOf(modelId, prompt.keyId), blocks };
    this.caches.placed(placed, placed, { nowMs: this.clock.now(), isOwn: true });
    if (this.#changed === undefined) return;
    this.#untold.push(placed);
    if (this.#untold.length > untoldPromptsMax) this.#untold.shift();
    this.#changed();
  }

  /** Calls back whenever this gateway's own placements changed. */
  onChange(changed: () => void): void {
    this.#changed = changed;
  }

  /** This gateway's open jobs on each machine. */
  loads(): readonly PlacedLoad[] {
    return this.openLoads.own();
  }

  /** Takes the prompts that no other gateway was told yet. */
  takePrompts(): readonly PlacedPrompt[] {
    return this.#untold.splice(0);
  }

  /** Takes the placements that another gateway told. */
  told(gateway: string, { loads, prompts }: Placements): void {
    this.openLoads.told(gateway, loads);
    const nowMs = this.clock.now();
    for (const prompt of prompts) this.caches.placed(prompt, prompt, { nowMs, isOwn: false });
  }

  /** Forgets the loads of a gateway that is away. */
  gone(gateway: string): void {
    this.openLoads.told(gateway, []);
  }
}

/** A job at the moment when it is placed. */
interface Placing extends PlacedHow {
  readonly target: Target;
  readonly work: Work;
  readonly expected: Expected;
  /** The load of the machine without this job. */
  readonly load: Load;
  readonly speed: Speed;
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
  readonly #memory: PlacementMemory;
  readonly #placing: Placing;
  readonly #placedAtMs: number;
  readonly #open: OpenLoad;
  #begunAtMs: number | undefined;

  constructor(placing: Placing, memory: PlacementMemory) {
    this.#placing = placing;
    this.#memory = memory;
    this.#open = memory.openLoads.placed(placing.target, placing.work);
    this.#placedAtMs = memory.clock.now();
  }

  accepted(): void {
    if (this.#open.isAccepted) return;
    const { target, asked, window } = this.#placing;
    this.#memory.openLoads.accepted(this.#open);
    this.#memory.notePrompt(target, asked, window);
  }

  /** Called when the machine has begun to answer. Of an answer in one piece, the gateway learns that from beats. */
  answering(): void {
    this.#memory.openLoads.begun(this.#open);
    if (!this.#placing.whole) this.#begunAtMs ??= this.#memory.clock.now();
  }

  /** Called once. The end is undefined for a job that failed. */
  ended(ended?: JobEnd): void {
    this.#memory.openLoads.ended(this.#open);
    if (ended === undefined) return;
    const { target, asked, work, expected, load } = this.#placing;
    const { modelId: model, needs } = asked;
    const { prompt, promptTokens: estimated = 0, answers = 1 } = needs;
    const { caches, counts, speeds } = this.#memory;
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
    const { target, asked, load, work, speed, isCold } = this.#placing;
    const { modelId: model } = asked;
    const { speeds, openLoads, clock } = this.#memory;
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
    const running = (Math.min(slots, load.occupied + 1) + Math.min(slots, openLoads.of(target).jobs + 1)) / 2;
    speeds.answered(target.machine, model, { running, tokens, ms: answerMs }, nowMs);
  }
}
