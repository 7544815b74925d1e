import { Fault } from "#shared/fault/fault.ts";
import type { LeftOutReason, RankReason } from "#shared/fleet/shown-fleet.ts";
import { type Catalogue, isAble, type Model, type OfferedModel } from "#shared/protocol/model.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { findModel } from "../fleet/catalogues.ts";
import { type Cost, expectedCost, type KnownLoad, loadOf, type Load, usualSpeed, type Work } from "./expected-cost.ts";
import type { MeasuredSpeed, Speed } from "./measured-speeds.ts";
import { orderMachines, type Able, type Ranked } from "./order-machines.ts";
import type { PromptBlocks } from "./prompt-blocks.ts";
import type { MachineStatus } from "../fleet/roster.ts";

/** A machine that may be asked, and all that the gateway knows of it. */
export interface Candidate {
  readonly presence: Presence;
  readonly catalogue: Catalogue;
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

/** The verdict on one candidate, with its reason. */
export interface Explained {
  readonly machine: string;
  readonly verdict: "ranked" | "left-out";
  /** Counted from 1. Undefined for a machine that is left out. */
  readonly rank: number | undefined;
  readonly reason: RankReason | LeftOutReason | undefined;
  readonly status: MachineStatus;
  readonly load: Load;
  readonly speed: MeasuredSpeed | undefined;
  /** Undefined for a machine that is left out. */
  readonly cost: Cost | undefined;
  readonly work: Work | undefined;
  /** The model as that machine offers it. */
  readonly model: Model | undefined;
}

/**
 * `explain` lists the ranked machines in order, then the left-out machines with the model, then the others. Requests do
 * not call it: each would pay for explaining a whole fleet.
 */
export type MachineChoice = { readonly explain: () => readonly Explained[] } & (
  | { readonly outcome: "machines"; readonly ranked: readonly Chosen[] }
  /** Present machines offer the model, but none can do what the request asks. */
  | { readonly outcome: "refused"; readonly fault: Fault }
  /** No present machine offers the model. */
  | { readonly outcome: "not-offered" }
);

interface LeftOut {
  readonly candidate: Candidate;
  readonly reason: LeftOutReason;
  readonly model: Model | undefined;
}

interface Weighed extends Able {
  readonly candidate: Candidate;
  readonly model: OfferedModel;
}

interface Fit {
  readonly candidate: Candidate;
  readonly model: OfferedModel;
}

/**
 * Ranks the machines that can serve a request, the best first, and explains the rank of every candidate. Only a certain
 * fact leaves a machine out. An estimate only puts it behind others.
 */
export function chooseMachine(options: {
  readonly modelId: string;
  readonly isExact?: boolean | undefined;
  readonly needs: Needs;
  readonly candidates: readonly Candidate[];
  readonly random: () => number;
}): MachineChoice {
  const { modelId, isExact, needs, candidates, random } = options;
  const able: Fit[] = [];
  const leftOut: LeftOut[] = [];
  for (const candidate of candidates) {
    const model = findModel(candidate.catalogue, modelId, { isExact });
    const reason = whyNot(candidate, { model, needs });
    if (reason === undefined && model !== undefined) able.push({ candidate, model });
    else leftOut.push({ candidate, reason: reason ?? "no_model", model });
  }
  const usual = usualSpeed(able.map(({ candidate }) => candidate.speed));
  const ranked = orderMachines(
    able.map((fit) => weighed(fit, needs, usual)),
    random,
  );
  const explain = (): readonly Explained[] => [
    ...ranked.map(({ machine: { candidate, model, cost }, reason }, place) =>
      explained(candidate, { verdict: "ranked", rank: place + 1, reason, model, cost }),
    ),
    ...leftOut
      .toSorted((one, other) => Number(one.model === undefined) - Number(other.model === undefined))
      .map(({ candidate, reason, model }) =>
        explained(candidate, { verdict: "left-out", rank: undefined, reason, model, cost: undefined }),
      ),
  ];
  if (able.length > 0) return { outcome: "machines", ranked: ranked.map(chosen), explain };
  const isThere = (reason: LeftOutReason): boolean => leftOut.some((each) => each.reason === reason);
  if (isThere("tried")) return { outcome: "machines", ranked: [], explain };
  const unable = leftOut.find(({ reason }) => reason === "unable")?.model;
  const fault = unable === undefined ? undefined : lacks(unable, needs);
  return fault === undefined ? { outcome: "not-offered", explain } : { outcome: "refused", fault, explain };
}

interface ChoiceQuery {
  readonly model: Model | undefined;
  readonly needs: Needs;
}

/** Returns why a machine is not asked. Undefined if it can be asked. */
export function whyNot(candidate: Candidate, { model, needs }: ChoiceQuery): LeftOutReason | undefined {
  const { presence, status, avoid } = candidate;
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

function weighed({ candidate, model }: Fit, needs: Needs, usual: Speed): Weighed {
  const { status, avoid, work = noWork } = candidate;
  const load = loadFor(candidate);
  return {
    candidate,
    model,
    status: status === "suspect" ? "suspect" : "present",
    breakerOpen: avoid === "breaker",
    contradicts: avoid === "contradicts",
    windowHolds: (needs.promptTokens ?? 0) <= model.context_window,
    load,
    cost: expectedCost(work, load, { ...usual, ...candidate.speed }),
    cachedTokens: work.cachedTokens,
  };
}

const noWork: Work = { promptTokens: 0, cachedTokens: 0, answerTokens: 0 };

/** Returns the load of a machine. A machine that said busy has no room until its next presence reports some. */
function loadFor({ presence, known, saidBusy = false }: Candidate): Load {
  const load = loadOf(presence, known ?? { jobs: presence.running + presence.queued, backlogTokens: 0 });
  return saidBusy ? { ...load, room: "none" } : load;
}

type MachineVerdict = Pick<Explained, "verdict" | "rank" | "reason" | "model" | "cost">;

function explained(candidate: Candidate, verdict: MachineVerdict): Explained {
  const { presence, status, speed, work } = candidate;
  return { machine: presence.machine, status, load: loadFor(candidate), speed, work, ...verdict };
}

function chosen({ machine: { candidate, model, cost, load, cachedTokens }, reason }: Ranked<Weighed>): Chosen {
  const { machine, epoch, memory } = candidate.presence;
  const causes = candidate.work?.load?.displaces ? { isPlaced: memory?.isPlaced === true } : undefined;
  return { machine, epoch, model, reason, cost, load, cachedTokens, causes };
}

const noCost: Cost = {
  loadMs: 0,
  slotMs: 0,
  backlogMs: 0,
  promptMs: 0,
  savedMs: 0,
  answerMs: 0,
  delayMs: 0,
  totalMs: 0,
};

/** Returns the machine that has an answer already, for a client that resumes it. Nothing was weighed for it. */
export function resumedChosen(presence: Presence, model: OfferedModel): Chosen {
  const { machine, epoch } = presence;
  const load = loadOf(presence, { jobs: presence.running + presence.queued, backlogTokens: 0 });
  return { machine, epoch, model, reason: undefined, cost: noCost, load, cachedTokens: 0 };
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
