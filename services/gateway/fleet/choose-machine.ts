import { Fault } from "#shared/fault/fault.ts";
import type { LeftOutReason, RankReason } from "#shared/fleet/shown-fleet.ts";
import type { Catalogue, Model } from "#shared/model/model.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { PromptPrefixes } from "./prompt-prefixes.ts";
import { findModel } from "./catalogues.ts";
import type { MachineStatus } from "./roster.ts";
import { loadOf, type Load, type Speed } from "./expected-time.ts";
import { orderMachines, type Able } from "./order-machines.ts";

/** A machine that may be asked, and all that the gateway knows of it. */
export interface Candidate {
  readonly presence: Presence;
  readonly catalogue: Catalogue;
  readonly status: MachineStatus;
  /**
   * `tried`: the machine already had this request. `breaker`: it lately failed with this model again and again.
   * `contradicts`: it said busy although its presence reported a free slot.
   */
  readonly avoid?: "tried" | "breaker" | "contradicts" | undefined;
  /** True if the machine said busy since its latest presence, whatever that presence reports. */
  readonly saidBusy?: boolean | undefined;
  /** True if the machine offers the model but its record does not permit the model. */
  readonly withheld?: boolean | undefined;
  /** Jobs that this gateway placed there since the machine's last presence, less those that ended since. */
  readonly pending?: number | undefined;
  /** Undefined until the machine's first answer with the model has ended. */
  readonly speed?: Speed | undefined;
  /** True if the machine ran the earlier part of this conversation, and may still have it cached. */
  readonly warm?: boolean | undefined;
}

/** The requirements of a request on its model. */
export interface Needs {
  /** The capability that the model must have. */
  readonly capability: "completion" | "embedding";
  readonly tools: boolean;
  /** The path of the first image in the request, if there is one. */
  readonly imageParam: string | undefined;
  /** The estimated length of the prompt in tokens. */
  readonly promptTokens?: number | undefined;
  /** Prefixes of the prompt, to find machines that have them cached. */
  readonly prefixes?: PromptPrefixes | undefined;
}

export interface Chosen {
  readonly machine: string;
  readonly epoch: string;
  readonly model: Model;
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
  readonly speed: Speed | undefined;
  /** The model as that machine offers it. */
  readonly model: Model | undefined;
}

/**
 * `explain` lists the ranked machines in order, then the left-out machines with the model, then the others. Requests do
 * not call it: each would pay for explaining a whole fleet.
 */
export type Choice = { readonly explain: () => readonly Explained[] } & (
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
  readonly model: Model;
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
}): Choice {
  const { modelId, isExact, needs, candidates, random } = options;
  const able: Weighed[] = [];
  const leftOut: LeftOut[] = [];
  for (const candidate of candidates) {
    const model = findModel(candidate.catalogue, modelId, { isExact });
    const reason = whyNot(candidate, { model, needs });
    if (reason === undefined && model !== undefined) able.push(weighed(candidate, model, needs));
    else leftOut.push({ candidate, reason: reason ?? "no_model", model });
  }
  const ranked = orderMachines(able, random);
  const explain = (): readonly Explained[] => [
    ...ranked.map(({ machine: { candidate, model }, reason }, place) =>
      explained(candidate, { verdict: "ranked", rank: place + 1, reason, model }),
    ),
    ...leftOut
      .toSorted((one, other) => Number(one.model === undefined) - Number(other.model === undefined))
      .map(({ candidate, reason, model }) =>
        explained(candidate, { verdict: "left-out", rank: undefined, reason, model }),
      ),
  ];
  if (able.length > 0) return { outcome: "machines", ranked: ranked.map(({ machine }) => chosen(machine)), explain };
  const isThere = (reason: LeftOutReason): boolean => leftOut.some((each) => each.reason === reason);
  if (isThere("tried")) return { outcome: "machines", ranked: [], explain };
  const unable = leftOut.find(({ reason }) => reason === "unable")?.model;
  const fault = unable === undefined ? undefined : lacks(unable, needs);
  return fault === undefined ? { outcome: "not-offered", explain } : { outcome: "refused", fault, explain };
}

interface Asking {
  readonly model: Model | undefined;
  readonly needs: Needs;
}

/** Returns why a machine is not asked. Undefined if it can be asked. */
export function whyNot(candidate: Candidate, { model, needs }: Asking): LeftOutReason | undefined {
  const { presence, status, avoid } = candidate;
  if (status === "offline" || presence.state === "gone") return "offline";
  if (presence.state === "draining") return "draining";
  if (presence.problem !== undefined) return "denied";
  if (presence.state === "waiting" || presence.runtime === null) return "no_runtime";
  if (model === undefined) return candidate.withheld === true ? "not_permitted" : "no_model";
  if (lacks(model, needs) !== undefined) return "unable";
  return avoid === "tried" ? "tried" : undefined;
}

function weighed(candidate: Candidate, model: Model, needs: Needs): Weighed {
  const { status, avoid, speed, warm = false } = candidate;
  return {
    candidate,
    model,
    status: status === "suspect" ? "suspect" : "present",
    breakerOpen: avoid === "breaker",
    contradicts: avoid === "contradicts",
    windowHolds: (needs.promptTokens ?? 0) <= model.context_window,
    load: loadFor(candidate),
    speed,
    warm,
  };
}

/** Returns the load of a machine. A machine that said busy has no room until its next presence reports some. */
function loadFor({ presence, pending = 0, saidBusy = false }: Candidate): Load {
  const load = loadOf(presence, pending);
  return saidBusy ? { ...load, room: "none" } : load;
}

function explained(candidate: Candidate, said: Pick<Explained, "verdict" | "rank" | "reason" | "model">): Explained {
  const { presence, status, speed } = candidate;
  return { machine: presence.machine, status, load: loadFor(candidate), speed, ...said };
}

function chosen({ candidate: { presence }, model }: Weighed): Chosen {
  const { machine, epoch } = presence;
  return { machine, epoch, model };
}

/** Returns the fault of a request that needs something the model cannot do. */
export function lacks(model: Model, needs: Needs): Fault | undefined {
  const { capabilities, id } = model;
  if (!capabilities[needs.capability]) {
    const verb = needs.capability === "completion" ? "generate text" : "embed";
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
