import { eventsShape } from "#shared/answer/answer-shape.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Model } from "#shared/model/model.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { EndPayload } from "#shared/protocol/frame-payload.ts";
import type { JobKind } from "#shared/protocol/job.ts";
import type { Presence } from "#shared/protocol/presence.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Catalogues } from "../fleet/catalogues.ts";
import type { KnownModels } from "../fleet/known-models.ts";
import type { Roster } from "../fleet/roster.ts";
import { chooseMachine, type Choice, type Chosen, type Needs } from "./choose-machine.ts";
import type { JobListener } from "./follow-frames.ts";
import { machineOffline } from "./machine-fault.ts";
import type { OpenJobs } from "./open-jobs.ts";
import { RenderedEvents, rendersHere } from "./render-events.ts";

interface PlacerOptions {
  readonly roster: Roster;
  readonly catalogues: Catalogues;
  readonly knownModels: KnownModels;
  readonly jobs: OpenJobs;
  readonly timing: Timing;
  readonly clock: Clock;
  readonly random: () => number;
}

/** A request that is to run on some machine. */
export interface Placement {
  readonly kind: JobKind;
  readonly shape: string;
  readonly modelId: string;
  readonly needs: Needs;
  readonly keyId: string;
  /** The only machines that may have it, if any are named. */
  readonly machines: readonly string[] | undefined;
  /** Let go of as soon as a machine has it: bodies are large, and answers take long. */
  body: Uint8Array;
  /** Of a body that goes in parts. */
  readonly sha256: string | undefined;
  readonly responseId: string;
  readonly createdSeconds: number;
  readonly includeUsage: boolean;
  readonly traceparent: string | undefined;
  readonly listener: JobListener;
  readonly signal: AbortSignal;
}

const taken = new Uint8Array();

/** A job that no machine took may be offered to as many. */
const offersMax = 3;

/** Finds a machine for a request and follows its job to the end, or throws the fault that the request ends in. */
export class JobPlacer {
  readonly #options: PlacerOptions;

  constructor(options: PlacerOptions) {
    this.#options = options;
  }

  async run(placement: Placement): Promise<EndPayload> {
    this.#options.jobs.insistOnConnection();
    try {
      return await this.#runSomewhere(placement);
    } catch (thrown) {
      throw this.#soonThere(Fault.from(thrown));
    }
  }

  async #runSomewhere(placement: Placement): Promise<EndPayload> {
    const ranked = await this.#rank(placement);
    let fault: Fault | undefined;
    for (const [place, chosen] of ranked.entries()) {
      const isLast = place === ranked.length - 1;
      const outcome = await this.#offer(placement, chosen, isLast);
      if (outcome.outcome === "end") return outcome.end;
      if (outcome.outcome === "fault") throw outcome.fault;
      if (fault === undefined || outcome.fault.code === "server_is_overloaded") fault = outcome.fault;
    }
    throw fault ?? machineOffline();
  }

  /** Throws what a request would end in that no machine can take now, before anything is asked of its key's limits. */
  async insistOnTaker(request: Pick<Placement, "kind" | "modelId" | "needs" | "machines" | "signal">): Promise<void> {
    this.#options.jobs.insistOnConnection();
    await this.#rank(request).catch((thrown: unknown) => {
      throw this.#soonThere(Fault.from(thrown));
    });
  }

  /** Who asks just after a reconnect of this gateway's own need not wait as long as for a machine that is away. */
  #soonThere(fault: Fault): Fault {
    const { code, message, param } = fault;
    const isSoonThere = code === "agent_offline" && this.#options.jobs.justConnected;
    return isSoonThere ? new Fault(code, { message, param, retryAfterSeconds: 1 }) : fault;
  }

  /** Whether a model that no machine offers is one whose machines are away, and then what keeps it away. */
  async absence(modelId: string, machines: readonly string[] | undefined): Promise<Fault> {
    const { knownModels, clock } = this.#options;
    const acquaintance = await knownModels.knows(modelId, { nowMs: clock.wall(), machines });
    if (acquaintance === "unknown") return modelNotFound(modelId);
    const present = this.#present(machines);
    const runtimesOffline = present.length > 0 && present.every(({ runtime }) => runtime === null);
    return runtimesOffline
      ? new Fault("runtime_offline", {
          message: "The model server on the GPU machine does not answer.",
          param: "model",
        })
      : new Fault("agent_offline", {
          message: "No GPU machine that is reachable offers this model just now.",
          param: "model",
        });
  }

  async #rank(
    placement: Pick<Placement, "kind" | "modelId" | "needs" | "machines" | "signal">,
  ): Promise<readonly Chosen[]> {
    let choice = this.#choose(placement);
    if (choice.outcome === "not-offered") {
      const { catalogues, clock, timing } = this.#options;
      await Promise.race([catalogues.settled(), sleep(clock, timing.catalogueWaitMs, placement.signal)]);
      choice = this.#choose(placement);
    }
    switch (choice.outcome) {
      case "machines":
        return choice.ranked.slice(0, offersMax);
      case "refused":
        throw choice.fault;
      case "not-offered":
        throw await this.absence(placement.modelId, placement.machines);
    }
  }

  #choose(placement: Pick<Placement, "kind" | "modelId" | "needs" | "machines">): Choice {
    const candidates = this.#present(placement.machines).map((presence) => ({
      presence,
      catalogue: this.#options.catalogues.of(presence),
    }));
    const { kind, modelId, needs } = placement;
    return chooseMachine({ kind, modelId, needs, candidates, random: this.#options.random });
  }

  #present(machines: readonly string[] | undefined): Presence[] {
    const { roster, clock } = this.#options;
    const present = roster.present(clock.now()).map(({ presence }) => presence);
    return machines === undefined ? present : present.filter(({ machine }) => machines.includes(machine));
  }

  async #offer(placement: Placement, chosen: Chosen, isLast: boolean): ReturnType<OpenJobs["run"]> {
    const { shape, listener, signal, responseId: id, createdSeconds, includeUsage } = placement;
    if (!rendersHere(shape, chosen.shapes)) return this.#submit({ placement, chosen, isLast, ...placement });
    const broken = new AbortController();
    const head = { id, createdSeconds, includeUsage, model: chosen.model.id };
    const rendered = new RenderedEvents({ shape, head, listener, onBroken: (fault) => broken.abort(fault) });
    const either = AbortSignal.any([signal, broken.signal]);
    const hearing = { shape: eventsShape, listener: rendered, signal: either };
    const outcome = await this.#submit({ placement, chosen, isLast, ...hearing });
    if (outcome.outcome === "end") rendered.end(outcome.end.usage?.completionTokens ?? 0);
    return outcome;
  }

  #submit(
    offer: { readonly placement: Placement; readonly chosen: Chosen; readonly isLast: boolean } & Pick<
      Placement,
      "shape" | "listener" | "signal"
    >,
  ): ReturnType<OpenJobs["run"]> {
    const { placement, chosen, isLast, shape, listener, signal } = offer;
    const { timing, jobs } = this.#options;
    const { kind, keyId, responseId, createdSeconds, includeUsage, traceparent } = placement;
    return jobs.run({
      target: chosen,
      head: {
        id: newToken(),
        kind,
        shape,
        model: chosen.model.id,
        keyId,
        remainingMs: timing.jobTotalMs,
        responseId,
        createdSeconds,
        includeUsage,
        ...(traceparent === undefined ? {} : { traceparent }),
      },
      body: placement.body,
      sha256: placement.sha256,
      acceptWithinMs: isLast ? timing.lostAfterMs : timing.acceptWaitMs * 2,
      listener,
      onBodyTaken: () => {
        placement.body = taken;
      },
      signal,
    });
  }
}

export function modelNotFound(modelId: Model["id"]): Fault {
  return new Fault("model_not_found", {
    message: `The model '${modelId}' does not exist or this key may not use it.`,
    param: "model",
  });
}
