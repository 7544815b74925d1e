import { Fault } from "#shared/fault/fault.ts";
import type { LeftOutReason, RankReason } from "#shared/fleet/shown-fleet.ts";
import { isAble, type Model, type OfferedModel } from "#shared/protocol/model.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { type Cost, expectedCost, type KnownLoad, loadOf, type Load, usualSpeed, type Work } from "./expected-cost.ts";
import type { MeasuredSpeed, Speed } from "./measured-speeds.ts";
import type { PromptBlocks } from "./prompt-blocks.ts";
import type { MachineStatus } from "../fleet/roster.ts";

/** A machine that may be asked, and all that the gateway knows of it. */
export interface Candidate {
  readonly presence: Presence;
  /** The model as the machine offers it. Undefined if it does not offer the model. */
  readonly model: OfferedModel | undefined;
  readonly status: MachineStatus;
  /** True if the machine is external and the job may not run there, or the job may run elsewhere alone. */
  readonly isMisplaced?: boolean | undefined;
  /** True if the machine's record says that it gets no new jobs. */
  readonly isCordoned?: boolean | undefined;
  /**
   * `tried`: the machine already had this request. `breaker`: it lately failed with this model again and again.
   * `contradicts`: it said busy although its presence reported a free slot.
   */
  readonly avoid?: "tried" | "breaker" | "contradicts" | undefined;
  /** True if the machine said busy since its latest presence, whatever that presence reports. */
  readonly saidBusy?: boolean | undefined;
  /** True if the machine offers the model but its record does not permit the model. */
  readonly withheld?: boolean | undefined;
  /** The jobs there, as far as this gateway knows. Undefined if it knows only what the machine reports. */
  readonly known?: KnownLoad | undefined;
  /** Undefined until the machine's first answer with the model has ended. */
  readonly speed?: MeasuredSpeed | undefined;
  /** The work of the request there. Undefined if nothing is known of its prompt. */
  readonly work?: Work | undefined;
}

/** The requirements of a request on its model. */
export interface Needs {
  /** The capability that the model must have. */
  readonly capability: keyof typeof verbs;
  readonly tools: boolean;
  /** The path of the first image in the request, if there is one. */
  readonly imageParam: string | undefined;
  /** The estimated length of the prompt in tokens. */
  readonly promptTokens?: number | undefined;
  /** The estimated tokens that a machine computes, where they are not one prompt. */
  readonly workTokens?: number | undefined;
  /** The number of answers that the request wants at once; 1 if undefined. */
  readonly answers?: number | undefined;
  /** The most tokens of the answer, if the request limits it. */
  readonly answerTokensMax?: number | undefined;
  /** The prompt as hashes, to find machines that have its beginning cached. */
  readonly prompt?: PromptBlocks | undefined;
}

export interface Chosen {
  readonly machine: string;
  readonly epoch: string;
  readonly model: OfferedModel;
  /** The reason of its place, and the facts that decided: the cost that was expected there, and what is cached there. */
  readonly reason: RankReason | undefined;
  readonly cost: Cost;
  readonly load: Load;
  readonly cachedTokens: number;
  /** The load that the request would cause there, if other models make room for it. */
  readonly causes?: { readonly isPlaced: boolean } | undefined;
}

/** The choice of machines, with the weight of each and those that were left out, for explanations. */
export type MachineChoice = {
  readonly weighed: readonly Ranked[];
  readonly leftOut: readonly LeftOut[];
} & (
  | { readonly outcome: "machines"; readonly ranked: readonly Chosen[] }
  /** Present machines offer the model, but none can do what the request asks. */
  | { readonly outcome: "refused"; readonly fault: Fault }
  /** No present machine offers the model. */
  | { readonly outcome: "not-offered" }
);

interface LeftOut {
  readonly candidate: Candidate;
  readonly reason: LeftOutReason;
}

interface Fit {
  readonly candidate: Candidate;
  readonly model: OfferedModel;
}

interface Weighed extends Fit {
  /** True if the model's context window there holds the prompt, as far as its length can be estimated. */
  readonly windowHolds: boolean;
  readonly load: Load;
  readonly cost: Cost;
  /** Tokens of the prompt that the machine is expected to have cached. */
  readonly cachedTokens: number;
}

interface Ranked {
  readonly machine: Weighed;
  /** The criterion that counts against the machine, or that decides its order among equals. */
  readonly reason: RankReason | undefined;
}

/**
 * Ranks the machines that can serve a request, the best first. Only a certain fact leaves a machine out. An estimate only
 * puts it behind others.
 */
export function chooseMachine(options: {
  readonly needs: Needs;
  readonly candidates: readonly Candidate[];
  readonly random: () => number;
}): MachineChoice {
  const { needs, candidates, random } = options;
  const able: Fit[] = [];
  const speeds: (MeasuredSpeed | undefined)[] = [];
  const leftOut: LeftOut[] = [];
  for (const candidate of candidates) {
    const { model } = candidate;
    const reason = whyNot(candidate, needs);
    if (reason === undefined && model !== undefined) {
      able.push({ candidate, model });
      speeds.push(candidate.speed);
    } else leftOut.push({ candidate, reason: reason ?? "no_model" });
  }
  const usual = usualSpeed(speeds);
  const weighed = orderMachines(
    able.map((fit) => weigh(fit, needs, usual)),
    random,
  );
  if (able.length > 0) return { outcome: "machines", ranked: weighed.map(chosen), weighed, leftOut };
  const isThere = (reason: LeftOutReason): boolean => leftOut.some((each) => each.reason === reason);
  if (isThere("tried")) return { outcome: "machines", ranked: [], weighed, leftOut };
  const unable = leftOut.find(({ reason }) => reason === "unable")?.candidate.model;
  const fault = unable === undefined ? undefined : lacks(unable, needs);
  const outcome =
    fault === undefined ? ({ outcome: "not-offered" } as const) : ({ outcome: "refused", fault } as const);
  return { ...outcome, weighed, leftOut };
}

/** Returns why a machine is not asked. Undefined if it can be asked. */
export function whyNot(candidate: Candidate, needs: Needs): LeftOutReason | undefined {
  const { presence, model, status, avoid } = candidate;
  if (candidate.isMisplaced === true) return "external";
  if (status === "offline" || presence.state === "gone") return "offline";
  if (presence.state === "draining") return "draining";
  if (candidate.isCordoned === true) return "cordoned";
  if (presence.problem !== undefined) return "denied";
  if (presence.state === "waiting" || presence.runtime === null) return "no_runtime";
  if (model === undefined) return candidate.withheld === true ? "not_permitted" : "no_model";
  if (lacks(model, needs) !== undefined) return "unable";
  return avoid === "tried" ? "tried" : undefined;
}

function weigh({ candidate, model }: Fit, needs: Needs, usual: Speed): Weighed {
  const { work = noWork } = candidate;
  const load = loadFor(candidate);
  return {
    candidate,
    model,
    windowHolds: (needs.promptTokens ?? 0) <= model.context_window,
    load,
    cost: expectedCost(work, load, { ...usual, ...candidate.speed }),
    cachedTokens: work.cachedTokens,
  };
}

const noWork: Work = { promptTokens: 0, cachedTokens: 0, answerTokens: 0 };

/** Returns the load of a machine. A machine that said busy has no room until its next presence reports some. */
export function loadFor({ presence, known, saidBusy = false }: Candidate): Load {
  const load = loadOf(presence, known ?? { jobs: presence.running + presence.queued, backlogTokens: 0 });
  return saidBusy ? { ...load, room: "none" } : load;
}

function chosen({ machine: { candidate, model, cost, load, cachedTokens }, reason }: Ranked): Chosen {
  const { machine, epoch, memory } = candidate.presence;
  const causes = candidate.work?.load?.displaces ? { isPlaced: memory?.isPlaced === true } : undefined;
  return { machine, epoch, model, reason, cost, load, cachedTokens, causes };
}

const verbs = {
  completion: "generate text",
  embedding: "embed",
  rerank: "rerank",
  transcription: "transcribe speech",
  speech: "speak",
  image: "make images",
  moderation: "moderate texts",
  tokenize: "tell its tokens",
} as const;

/** Returns the fault of a request that needs something the model cannot do. */
export function lacks(model: Model, needs: Needs): Fault | undefined {
  const { capabilities, id } = model;
  if (!isAble(model, needs.capability)) {
    const verb = verbs[needs.capability];
    return new Fault("unsupported_value", { message: `The model '${id}' does not ${verb}.`, param: "model" });
  }
  if (needs.tools && !capabilities.tools) {
    const message = `The model '${id}' does not support tools.`;
    return new Fault("model_does_not_support_tools", { message, param: "tools" });
  }
  if (needs.imageParam !== undefined && !capabilities.vision) {
    const message = `The model '${id}' does not accept images.`;
    return new Fault("unsupported_value", { message, param: needs.imageParam });
  }
  return undefined;
}

/** Costs that differ by less are equal: they are made of measured times. */
const alikeMs = 5;

/**
 * A machine with a part of the prompt cached counts as equal to the cheapest one while it costs at most this much more, and
 * this many times what the cache saves. A prompt that a second machine computes takes room in that machine's cache from other
 * prompts, which no cost counts.
 */
const excessMsMax = 200;
const excessForSaved = 4;

/**
 * Sorts machines into the order in which they are asked. Machines without an open breaker come first, then machines
 * heard lately, then machines whose window holds the prompt, then machines whose queue is not full. Among those the
 * least expected cost comes first, and of those that count as equal the one with most of the prompt cached. Others are
 * drawn, so that gateways do not all choose the same machine.
 */
function orderMachines(machines: readonly Weighed[], random: () => number): readonly Ranked[] {
  const groups = [...Map.groupBy(machines, penaltyOf)].toSorted(([one], [other]) => one - other);
  const ranked: Ranked[] = [];
  for (const [, group] of groups) {
    let leastMs = Infinity;
    for (const { cost } of group) leastMs = Math.min(leastMs, cost.totalMs);
    const drawn = [];
    for (const machine of group) {
      const { cost, cachedTokens } = machine;
      const excessMs = Math.max(0, cost.totalMs - leastMs - alikeMs);
      const isNear = excessMs <= Math.min(excessMsMax, excessForSaved * cost.savedMs);
      drawn.push({ machine, excessMs, isNear, cachedTokens: isNear ? cachedTokens : -1, draw: random() });
    }
    drawn.sort(
      (one, other) => other.cachedTokens - one.cachedTokens || one.excessMs - other.excessMs || one.draw - other.draw,
    );
    for (const { machine, isNear } of drawn)
      ranked.push({ machine, reason: rankReasonOf(machine, isNear, group.length) });
  }
  return ranked;
}

/** Returns the penalty of a machine. Each criterion outweighs all those after it. */
function penaltyOf({ candidate: { avoid, status }, windowHolds, load }: Weighed): number {
  return (
    (avoid === undefined ? 0 : 8) +
    (status === "suspect" ? 4 : 0) +
    (windowHolds ? 0 : 2) +
    (load.room === "none" ? 1 : 0)
  );
}

function rankReasonOf(machine: Weighed, isNear: boolean, machines: number): RankReason | undefined {
  const { candidate, windowHolds, load, cachedTokens } = machine;
  const { avoid, status } = candidate;
  if (avoid === "breaker" || avoid === "contradicts") return avoid;
  if (status === "suspect") return "suspect";
  if (!windowHolds) return "small_window";
  if (load.room === "none") return "full";
  if (load.room === "queue") return "busy";
  if (!isNear) return "slower";
  if (cachedTokens > 0) return "warm";
  return machines > 1 ? "drawn" : undefined;
}
