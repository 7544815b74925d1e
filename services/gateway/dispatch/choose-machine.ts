import { canAnswer, eventsShape } from "#shared/answer/answer-shape.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { LeftOutReason, RankReason } from "#shared/fleet/shown-route.ts";
import type { Catalogue, Model } from "#shared/model/model.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { PromptPrefixes } from "../asked/prompt-prefixes.ts";
import { findModel } from "../fleet/find-model.ts";
import type { MachineStatus } from "../fleet/roster.ts";
import { loadOf, type Load, type Speed } from "./expected-time.ts";
import { orderMachines, type Able } from "./order-machines.ts";

/** A machine that may be asked, and all that is known of it. */
export interface Candidate {
  readonly presence: Presence;
  readonly catalogue: Catalogue;
  readonly status: MachineStatus;
  /** It had this very request already, or it failed lately with this model again and again. */
  readonly avoid?: "tried" | "breaker" | undefined;
  /** What this gateway placed there since its last presence, less what has ended since. */
  readonly pending?: number | undefined;
  /** Unknown until the first answer has come from there. */
  readonly speed?: Speed | undefined;
  /** It did the earlier part of this conversation, and may still know it. */
  readonly warm?: boolean | undefined;
}

/** What a request asks of a model beside its name. */
export interface Needs {
  /** What it is asked to do at all. */
  readonly capability: "completion" | "embedding";
  readonly tools: boolean;
  /** The path of the first image in the request, if there is one. */
  readonly imageParam: string | undefined;
  /** How long its prompt is expected to be. */
  readonly promptTokens?: number | undefined;
  /** How its prompt begins, for machines that have that at hand. */
  readonly prefixes?: PromptPrefixes | undefined;
}

export interface Chosen {
  readonly machine: string;
  readonly epoch: string;
  readonly model: Model;
  /** The shapes of answers that it knows. */
  readonly shapes: readonly string[];
}

/** What became of one candidate, and why. */
export interface Explained {
  readonly machine: string;
  readonly verdict: "ranked" | "left-out";
  /** Counted from 1; only of those that are ranked. */
  readonly rank: number | undefined;
  readonly reason: RankReason | LeftOutReason | undefined;
  readonly status: MachineStatus;
  readonly load: Load;
  readonly speed: Speed | undefined;
  /** The model as that machine has it. */
  readonly model: Model | undefined;
}

/**
 * `explain` tells of those that are ranked in their order, then of those that have the model, then of the others; it is
 * not called for requests, of which each would pay for the words about a whole fleet.
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
 * Ranks the machines that can serve a request, the best first, and says of every candidate why it stands where it does.
 * A machine is left out only for what is certain: what is estimated puts it behind others.
 */
export function chooseMachine(options: {
  readonly modelId: string;
  readonly kind: JobKind;
  readonly needs: Needs;
  readonly candidates: readonly Candidate[];
  readonly random: () => number;
}): Choice {
  const { modelId, kind, needs, candidates, random } = options;
  const able: Weighed[] = [];
  const leftOut: LeftOut[] = [];
  for (const candidate of candidates) {
    const model = findModel(candidate.catalogue, modelId);
    const reason = whyNot(candidate, { model, kind, needs });
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
  if (isThere("too_old")) return { outcome: "refused", fault: tooOld(modelId), explain };
  const unable = leftOut.find(({ reason }) => reason === "unable")?.model;
  const fault = unable === undefined ? undefined : lacks(unable, needs);
  return fault === undefined ? { outcome: "not-offered", explain } : { outcome: "refused", fault, explain };
}

interface Asking {
  readonly model: Model | undefined;
  readonly kind: JobKind;
  readonly needs: Needs;
}

/** Why a machine is not asked, if it is not. */
export function whyNot(candidate: Candidate, { model, kind, needs }: Asking): LeftOutReason | undefined {
  const { presence, status, avoid } = candidate;
  if (status === "offline" || presence.state === "gone") return "offline";
  if (presence.state === "draining") return "stopping";
  if (presence.state === "waiting" || presence.runtime === null) return "no_runtime";
  if (model === undefined) return "no_model";
  if (lacks(model, needs) !== undefined) return "unable";
  if (!knowsKind(presence.shapes, kind)) return "too_old";
  return avoid === "tried" ? "tried" : undefined;
}

function weighed(candidate: Candidate, model: Model, needs: Needs): Weighed {
  const { presence, status, avoid, pending = 0, speed, warm = false } = candidate;
  return {
    candidate,
    model,
    status: status === "suspect" ? "suspect" : "present",
    breakerOpen: avoid === "breaker",
    windowHolds: (needs.promptTokens ?? 0) <= model.context_window,
    load: loadOf(presence, pending),
    speed,
    warm,
  };
}

function explained(
  { presence, status, pending = 0, speed }: Candidate,
  said: Pick<Explained, "verdict" | "rank" | "reason" | "model">,
): Explained {
  return { machine: presence.machine, status, load: loadOf(presence, pending), speed, ...said };
}

function chosen({ candidate: { presence }, model }: Weighed): Chosen {
  const { machine, epoch, shapes } = presence;
  return { machine, epoch, model, shapes };
}

/** Every agent chats. What else it does is told by the shapes that it knows: to be asked for events alone is no use. */
function knowsKind(shapes: readonly string[], kind: JobKind): boolean {
  return kind === "chat" || shapes.some((shape) => shape !== eventsShape && canAnswer(kind, shape));
}

function tooOld(model: string): Fault {
  return new Fault("unsupported_value", {
    message: `No machine with the model '${model}' knows this kind of request; their agents are older than this gateway.`,
    param: "model",
  });
}

/** What a request asks that the model cannot do. */
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
