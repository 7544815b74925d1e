import { Fault } from "#shared/fault/fault.ts";
import { catalogue as catalogueSchema, type Catalogue, type Model, type OfferedModel } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { OpenJobs } from "./open-jobs.ts";
import { RecordReader } from "#shared/protocol/answer-events.ts";
import { decodeJson } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { Roster, Target } from "../fleet/roster.ts";

export interface Listing {
  readonly models: readonly Model[];
  /** Machines that count as present but did not answer in time. */
  readonly unanswered: readonly string[];
}

/** The answer of one machine in a round. */
export interface MachineAnswer {
  readonly machine: string;
  readonly told: Catalogue | "runtime_offline" | "nothing";
}

interface ListOptions {
  readonly jobs: OpenJobs;
  readonly roster: Roster;
  /** True if a machine may offer a model. Without this option, it may offer every model. */
  readonly permits?: (machine: string, modelId: string) => boolean;
  readonly timing: Timing;
  readonly clock: Clock;
}

/**
 * Asks every present machine for its models, live and in parallel. An answer means that the site and a machine are both
 * well, which is what the contract's health check asks. Callers that come within `modelsShareMs` share one round, so
 * that probes cost the machines nothing.
 */
export class LiveModels {
  readonly #options: ListOptions;
  #round: { readonly startedAtMs: number; readonly answers: Promise<readonly MachineAnswer[]> } | undefined;

  constructor(options: ListOptions) {
    this.#options = options;
  }

  /** Returns the answer of each present machine, or of the named ones only. */
  async answers(machines?: readonly string[]): Promise<readonly MachineAnswer[]> {
    const { clock, timing } = this.#options;
    const nowMs = clock.now();
    if (this.#round === undefined || nowMs - this.#round.startedAtMs > timing.modelsShareMs) {
      this.#round = { startedAtMs: nowMs, answers: this.#ask(nowMs) };
    }
    const all = await this.#round.answers;
    return machines === undefined ? all : all.filter(({ machine }) => machines.includes(machine));
  }

  /** Returns the models of all machines, or of the named ones only, as one list. */
  async list(machines?: readonly string[]): Promise<Listing> {
    const answers = await this.answers(machines);
    const catalogues = answers.flatMap(({ told }) => (typeof told === "string" ? [] : [told]));
    if (catalogues.length > 0) {
      const unanswered = answers.flatMap(({ machine, told }) => (told === "nothing" ? [machine] : []));
      return { models: mergeCatalogues(catalogues), unanswered };
    }
    this.#options.jobs.insistOnConnection();
    if (answers.some(({ told }) => told === "runtime_offline")) {
      throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
    }
    throw new Fault("agent_offline", { message: "No paired GPU machine is reachable." });
  }

  async #ask(nowMs: number): Promise<readonly MachineAnswer[]> {
    const { jobs, roster, timing, clock, permits = () => true } = this.#options;
    jobs.insistOnConnection();
    const present = roster.present(nowMs).flatMap(({ presence }) => (presence.state === "draining" ? [] : [presence]));
    return Promise.all(
      present.map(async ({ machine, epoch }): Promise<MachineAnswer> => {
        try {
          const target = { machine, epoch };
          const told = await askCatalogue({ jobs, target, withinMs: timing.modelsWaitMs, clock });
          return { machine, told: told.filter(({ id }) => permits(machine, id)) };
        } catch (error) {
          return { machine, told: Fault.from(error).code === "runtime_offline" ? "runtime_offline" : "nothing" };
        }
      }),
    );
  }
}

/**
 * Merges the models of several machines into one list, sorted by id. The same id on several machines is one model. It
 * has the capabilities of all of them and the largest of their windows. It counts as Apple's only when it does on every
 * machine. A request is routed later by what it needs, so no machine gets a request for what it lacks. Fields that only
 * operators see are left out.
 */
export function mergeCatalogues(catalogues: readonly Catalogue[]): Model[] {
  const merged = new Map<string, Model>();
  for (const model of catalogues.flat().map(forClients)) {
    const before = merged.get(model.id);
    merged.set(model.id, before === undefined ? model : merge(before, model));
  }
  return [...merged.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

function forClients({ runtime: _runtime, loaded: _loaded, ...model }: OfferedModel): Model {
  return model;
}

function merge(one: Model, other: Model): Model {
  const { apple_mlx: _, ...rest } = one;
  const can = (capability: keyof Model["capabilities"]): boolean =>
    one.capabilities[capability] || other.capabilities[capability];
  return {
    ...rest,
    owned_by: one.owned_by < other.owned_by ? one.owned_by : other.owned_by,
    created: Math.min(one.created, other.created),
    capabilities: {
      completion: can("completion"),
      vision: can("vision"),
      embedding: can("embedding"),
      tools: can("tools"),
      thinking: can("thinking"),
    },
    context_window: Math.max(one.context_window, other.context_window),
    size_mb: Math.max(one.size_mb, other.size_mb),
    runtime_profile: one.runtime_profile === other.runtime_profile ? one.runtime_profile : "auto",
    ...(one.apple_mlx === true && other.apple_mlx === true ? { apple_mlx: true as const } : {}),
  };
}

/** Asks one boot of a machine for its current catalogue, and waits at most `withinMs`. */
export async function askCatalogue(options: {
  readonly jobs: OpenJobs;
  readonly target: Target;
  readonly withinMs: number;
  readonly clock: Clock;
}): Promise<Catalogue> {
  const { jobs, target, withinMs, clock } = options;
  const late = new AbortController();
  const timer = clock.after(withinMs, () => late.abort(answeredTooLate()));
  const reader = new RecordReader({ textMax: limits.catalogueBytesMax, broken: unreadable });
  let told: Catalogue | undefined;
  try {
    const outcome = await jobs.run({
      target,
      head: { id: newToken(), kind: "models", remainingMs: Math.ceil(withinMs) },
      body: new Uint8Array(),
      acceptWithinMs: withinMs,
      listener: {
        onData(payload) {
          for (const { text } of reader.read(payload)) told = decodeJson(catalogueSchema, Buffer.from(text));
        },
      },
      signal: late.signal,
    });
    if (outcome.outcome !== "end") throw outcome.fault;
    if (told === undefined) throw unreadable("no list of models");
    return told;
  } finally {
    timer.cancel();
  }
}

function unreadable(what: string): Fault {
  return new Fault("upstream_error", {
    message: "The machine sent an invalid list of models.",
    internal: `the machine sent ${what}`,
  });
}

function answeredTooLate(): Fault {
  return new Fault("agent_offline", { message: "The GPU machine did not answer in time." });
}
