import { canAnswer, eventsShape } from "#shared/answer/answer-shape.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Catalogue, Model } from "#shared/model/model.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import { findModel } from "../fleet/find-model.ts";

/** A machine that is present, and what it offers. */
export interface Candidate {
  readonly presence: Presence;
  readonly catalogue: Catalogue;
}

/** What a request asks of a model beside its name. */
export interface Needs {
  /** What it is asked to do at all. */
  readonly capability: "completion" | "embedding";
  readonly tools: boolean;
  /** The path of the first image in the request, if there is one. */
  readonly imageParam: string | undefined;
}

export interface Chosen {
  readonly machine: string;
  readonly epoch: string;
  readonly model: Model;
  /** The shapes of answers that it knows. */
  readonly shapes: readonly string[];
}

export type Choice =
  | { readonly outcome: "machines"; readonly ranked: readonly Chosen[] }
  /** Present machines offer the model, but none can do what the request asks. */
  | { readonly outcome: "refused"; readonly fault: Fault }
  /** No present machine offers the model. */
  | { readonly outcome: "not-offered" };

/**
 * Ranks the machines that can serve a request, the best first: those with a free slot before those with a queue, and
 * among equals by `random`, so that gateways that do not know of each other do not all choose the same.
 */
export function chooseMachine(options: {
  readonly modelId: string;
  readonly kind: JobKind;
  readonly needs: Needs;
  readonly candidates: readonly Candidate[];
  readonly random: () => number;
}): Choice {
  const { modelId, kind, needs, candidates, random } = options;
  const offering = candidates.flatMap(({ presence, catalogue }) => {
    const model = findModel(catalogue, modelId);
    return model === undefined || presence.state !== "ready" ? [] : [{ presence, model }];
  });
  if (offering.length === 0) return { outcome: "not-offered" };
  const able = offering.filter(({ model }) => lacks(model, needs) === undefined);
  if (able.length === 0) {
    const [first] = offering;
    const fault = first === undefined ? undefined : lacks(first.model, needs);
    return fault === undefined ? { outcome: "not-offered" } : { outcome: "refused", fault };
  }
  const knowing = able.filter(({ presence }) => knowsKind(presence.shapes, kind));
  if (knowing.length === 0) return { outcome: "refused", fault: tooOld(modelId) };
  const ranked = knowing
    .map(({ presence, model }) => ({ presence, model, load: loadOf(presence), draw: random() }))
    .toSorted((a, b) => a.load - b.load || a.draw - b.draw)
    .map(({ presence, model }) => ({
      machine: presence.machine,
      epoch: presence.epoch,
      model,
      shapes: presence.shapes,
    }));
  return { outcome: "machines", ranked };
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

function loadOf(presence: Presence): number {
  return (presence.running + presence.queued) / Math.max(1, presence.slots);
}

function lacks(model: Model, needs: Needs): Fault | undefined {
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
