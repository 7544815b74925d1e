import type { Clock } from "#shared/process/clock.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { Needs } from "./choose-machine.ts";
import { type CountedTurn, CountedPrompts } from "./counted-prompts.ts";
import { type KnownLoad, loadOf, usualSpeed, type Work } from "./expected-cost.ts";
import { type Expected, MachineCaches, nothingExpected } from "./machine-caches.ts";
import { type MeasuredSpeed, MeasuredSpeeds } from "./measured-speeds.ts";
import { PlacedJob, type Placing } from "./placed-job.ts";
import { type PlacedLoad, PlacedLoads } from "./placed-loads.ts";
import { blockBytes, type PromptBlocks, saltOf } from "./prompt-blocks.ts";
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

/** The slots of a machine, and the context window of the model there. */
export interface MachineSize {
  readonly slots: number;
  readonly window: number;
}

/** Characters of a token, as most prompts have them. */
const charactersPerToken = 4;
/** Limits the prompts that wait to be told to other gateways. The oldest is dropped: it costs them only time. */
export const untoldPromptsMax = 1_000;

/** Remembers what this gateway and others placed on machines, and what this gateway measured there. */
export class PlacementMemory {
  readonly #clock: Pick<Clock, "now">;
  readonly #speeds = new MeasuredSpeeds();
  readonly #caches = new MachineCaches();
  readonly #counts = new CountedPrompts();
  readonly #loads: PlacedLoads;
  readonly #untold: PlacedPrompt[] = [];
  #changed: (() => void) | undefined;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.#loads = new PlacedLoads(clock, () => this.#changed?.());
  }

  /** Returns the work of a request, none of it cached. */
  workOf({ modelId, needs }: PlacementNeed): Work {
    const { promptTokens = 0, workTokens = promptTokens, answerTokensMax = Infinity } = needs;
    const answerTokens = Math.min(this.#speeds.answerTokens(modelId), answerTokensMax);
    return { promptTokens: workTokens * this.#speeds.ratio(modelId), cachedTokens: 0, answerTokens };
  }

  /** Returns the work of a request on a machine, and how much of its prompt the machine is expected to have cached. */
  workOn(target: Target, asked: PlacementNeed): { readonly work: Work; readonly expected: Expected } {
    const { modelId, needs } = asked;
    const { prompt } = needs;
    const work = this.workOf(asked);
    if (prompt === undefined) return { work, expected: nothingExpected };
    const expected = this.#caches.expected(target, prompt, saltOf(modelId, prompt.keyId), this.#clock.now());
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
    return this.#caches.warmest(machines, { prompt, salt: saltOf(modelId, prompt.keyId), count }, this.#clock.now());
  }

  loadOn(target: Target): KnownLoad {
    return this.#loads.of(target);
  }

  speedOf(machine: string, modelId: string): MeasuredSpeed | undefined {
    return this.#speeds.of(machine, modelId, this.#clock.now());
  }

  /** Returns the longest earlier turn of a prompt that a machine counted. */
  countedTurn(prompt: PromptBlocks, modelId: string): CountedTurn | undefined {
    return this.#counts.longest(prompt, modelId);
  }

  /** Takes the load that a machine reports of itself. */
  reported(presence: Presence): void {
    this.#loads.reported(presence);
  }

  /** Follows a job that goes to a machine. With `whole` its answer comes in one piece. */
  placed(
    { machine, epoch }: Target,
    {
      asked,
      slots,
      window,
      ...how
    }: { readonly asked: PlacementNeed } & Pick<Placing, "whole" | "isCold"> & MachineSize,
  ): PlacedJob {
    const target = { machine, epoch };
    const { modelId: model, needs } = asked;
    const { work, expected } = this.workOn(target, asked);
    const load = loadOf({ slots, queueMax: 0 }, this.#loads.of(target));
    const speed = { ...usualSpeed([]), ...this.speedOf(machine, model) };
    const placing = { target, model, needs, work, expected, load, speed, ...how };
    return new PlacedJob(placing, {
      load: this.#loads.placed(target, work),
      running: () => this.#loads.of(target).jobs + 1,
      accepted: () => this.#notePrompt(target, asked, window),
      caches: this.#caches,
      speeds: this.#speeds,
      counts: this.#counts,
      clock: this.#clock,
    });
  }

  /** Notes a prompt that a machine accepted, as far as its window holds it. */
  #notePrompt(target: Target, { modelId, needs: { prompt } }: PlacementNeed, window: number): void {
    if (prompt === undefined || prompt.blocks.length === 0) return;
    const blocks = prompt.blocks.subarray(0, Math.ceil((window * charactersPerToken) / blockBytes));
    const placed: PlacedPrompt = { ...target, salt: saltOf(modelId, prompt.keyId), blocks };
    this.#caches.placed(placed, placed, { nowMs: this.#clock.now(), isOwn: true });
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
    return this.#loads.own();
  }

  /** Takes the prompts that no other gateway was told yet. */
  takePrompts(): readonly PlacedPrompt[] {
    return this.#untold.splice(0);
  }

  /** Takes the placements that another gateway told. */
  told(gateway: string, { loads, prompts }: Placements): void {
    this.#loads.told(gateway, loads);
    const nowMs = this.#clock.now();
    for (const prompt of prompts) this.#caches.placed(prompt, prompt, { nowMs, isOwn: false });
  }

  /** Forgets the loads of a gateway that is away. */
  gone(gateway: string): void {
    this.#loads.told(gateway, []);
  }
}
