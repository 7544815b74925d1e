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

/** Explains those that are ranked in their order, then those that have the model, then the others. */
export type Choice = { readonly explained: readonly Explained[] } & (
  | { readonly outcome: "machines"; readonly ranked: readonly Chosen[] }
  /** Present machines offer the model, but none can do what the request asks. */
  | { readonly outcome: "refused"; readonly fault: Fault }
  /** No present machine offers the model. */
  | { readonly outcome: "not-offered" }
);

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
  const judged = candidates.map((candidate) => judge(candidate, { modelId, kind, needs }));
  const able = judged.flatMap((each) => ("able" in each ? [each.able] : []));
  const leftOut = judged.flatMap((each) => ("able" in each ? [] : [each.leftOut]));
  const ranked = orderMachines(able, random);
  const explained = [
    ...ranked.map(({ machine, reason }, place) =>
      explain(machine.candidate, { verdict: "ranked", rank: place + 1, reason, model: machine.model }),
    ),
    ...leftOut.toSorted((one, other) => Number(one.model === undefined) - Number(other.model === undefined)),
  ];
  if (able.length > 0) return { outcome: "machines", ranked: ranked.map(({ machine }) => chosen(machine)), explained };
  const outcomes = new Set(explained.map(({ reason }) => reason));
  if (outcomes.has("tried")) return { outcome: "machines", ranked: [], explained };
  if (outcomes.has("too_old")) return { outcome: "refused", fault: tooOld(modelId), explained };
  const unable = explained.find(({ reason }) => reason === "unable")?.model;
  const fault = unable === undefined ? undefined : lacks(unable, needs);
  return fault === undefined ? { outcome: "not-offered", explained } : { outcome: "refused", fault, explained };
}

type Judged = { readonly able: Weighed } | { readonly leftOut: Explained };

function judge(
  candidate: Candidate,
  { modelId, kind, needs }: { readonly modelId: string; readonly kind: JobKind; readonly needs: Needs },
): Judged {
  const { presence, catalogue, status, avoid, pending = 0, speed, warm = false } = candidate;
  const model = findModel(catalogue, modelId);
  const leftOut = (reason: LeftOutReason): Judged => ({
    leftOut: explain(candidate, { verdict: "left-out", rank: undefined, reason, model }),
  });
  if (status === "offline" || presence.state === "gone") return leftOut("offline");
  if (presence.state === "draining") return leftOut("stopping");
  if (presence.state === "waiting" || presence.runtime === null) return leftOut("no_runtime");
  if (model === undefined) return leftOut("no_model");
  if (lacks(model, needs) !== undefined) return leftOut("unable");
  if (!knowsKind(presence.shapes, kind)) return leftOut("too_old");
  if (avoid === "tried") return leftOut("tried");
  const windowHolds = (needs.promptTokens ?? 0) <= model.context_window;
  const load = loadOf(presence, pending);
  return { able: { candidate, model, status, breakerOpen: avoid === "breaker", windowHolds, load, speed, warm } };
}

function explain(
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
