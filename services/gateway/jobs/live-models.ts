import { Fault } from "#shared/fault/fault.ts";
import {
  type Catalogue,
  type DetailedModel,
  type Model,
  modelDetails,
  modelsPerMachineMax,
  offeredModel as offeredModelSchema,
} from "#shared/protocol/model.ts";
import { abortAfter, type Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { recordsOf } from "./job-events.ts";
import type { OpenJobs } from "./open-jobs.ts";
import { RecordReader } from "#shared/protocol/frame.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { limits } from "#shared/protocol/limits.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { findModel } from "../fleet/catalogues.ts";
import type { ModelTarget } from "../routing/job-placements.ts";
import type { Roster, Target } from "../fleet/roster.ts";

export interface Listing {
  readonly models: readonly DetailedModel[];
  /** The answers that the models are from. */
  readonly answers: readonly MachineAnswer[];
  /** Machines that count as present but did not answer in time. */
  readonly unanswered: readonly string[];
}

/** The answer of one machine in a round. */
export interface MachineAnswer {
  readonly machine: string;
  /** True if the models of the machine run elsewhere. */
  readonly external: boolean;
  readonly answer: Catalogue | "runtime_offline" | "nothing";
}

interface ListOptions {
  readonly jobs: OpenJobs;
  readonly roster: Roster;
  /** True if a machine may offer a model. Without this option, it may offer every model. */
  readonly permits?: (machine: string, modelId: string) => boolean;
  /** The machines whose models run elsewhere. */
  readonly external?: ReadonlySet<string>;
  readonly timing: Timing;
  readonly clock: Clock;
}

/** The machines whose models a key may see. */
interface Seeing {
  /** Undefined for all machines. */
  readonly machines?: readonly string[] | undefined;
  /** True if the key may use external machines. */
  readonly external?: true | undefined;
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

  /**
   * Returns the models of the machines that a key may see, as one list. Models that run elsewhere are not in it: only
   * the answers have them, for routes that lead there.
   */
  async list({ machines, external: mayLeave }: Seeing): Promise<Listing> {
    const { roster, clock } = this.#options;
    const nowMs = clock.now();
    const all = await this.answers(machines);
    const answers = all.filter(
      ({ machine, external }) => (mayLeave || !external) && roster.find(machine, nowMs)?.isCordoned !== true,
    );
    if (answers.some(({ answer }) => typeof answer !== "string")) {
      const catalogues = answers.flatMap(({ answer, external }) =>
        typeof answer === "string" || external ? [] : [answer],
      );
      const unanswered = answers.flatMap(({ machine, answer }) => (answer === "nothing" ? [machine] : []));
      return { models: mergeCatalogues(catalogues), answers, unanswered };
    }
    this.#options.jobs.assertConnection();
    if (answers.some(({ answer }) => answer === "runtime_offline")) {
      throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
    }
    throw new Fault("agent_offline", { message: "No paired GPU machine is reachable." });
  }

  async #ask(nowMs: number): Promise<readonly MachineAnswer[]> {
    const { jobs, roster, timing, clock, permits = () => true, external: marked } = this.#options;
    jobs.assertConnection();
    const present = roster.present(nowMs).flatMap(({ presence }) => (presence.state === "draining" ? [] : [presence]));
    return Promise.all(
      present.map(async ({ machine, epoch }): Promise<MachineAnswer> => {
        const external = marked?.has(machine) ?? false;
        try {
          const target = { machine, epoch };
          const catalogue = await askCatalogue({ jobs, target, withinMs: timing.modelsWaitMs, clock });
          return { machine, external, answer: catalogue.filter(({ id }) => permits(machine, id)) };
        } catch (error) {
          const answer = Fault.from(error).code === "runtime_offline" ? "runtime_offline" : "nothing";
          return { machine, external, answer };
        }
      }),
    );
  }
}

/**
 * Merges the models of several machines into one list, sorted by id. The same id on several machines is one model. It
 * has the capabilities of all of them and the largest of their windows. It counts as Apple's only when it does on every
 * machine, and has the details on which all machines agree. A request is routed later by what it needs, so no machine gets
 * a request for what it lacks. Fields that only operators see are left out.
 */
export function mergeCatalogues(catalogues: readonly Catalogue[]): DetailedModel[] {
  const merged = new Map<string, DetailedModel>();
  for (const offered of catalogues.flat()) {
    const {
      runtime: _r,
      loaded: _l,
      memory_mb: _m,
      load_ms: _t,
      counts: _c,
      digest: _d,
      continues: _s,
      sampling: _p,
      ...model
    } = offered;
    const before = merged.get(model.id);
    merged.set(model.id, before === undefined ? model : merge(before, model));
  }
  return [...merged.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** Returns a target's model as the machines that may run it offer it together. Undefined if none offers it. */
export function offeredModel(answers: readonly MachineAnswer[], target: ModelTarget): DetailedModel | undefined {
  const { modelId, machines } = target;
  const found = answers.flatMap(({ machine, external, answer }) => {
    if (typeof answer === "string" || machines?.includes(machine) === false) return [];
    if (external !== (target.external === true)) return [];
    return findModel(answer, modelId, target) ?? [];
  });
  return mergeCatalogues([found])[0];
}

function merge(one: DetailedModel, other: DetailedModel): DetailedModel {
  const { apple_mlx: _, details = {}, ...rest } = one;
  const agreed = modelDetails
    .keyof()
    .options.filter((name) => details[name] && details[name] === other.details?.[name]);
  const further = [...new Set([...(one.x_capabilities ?? []), ...(other.x_capabilities ?? [])])];
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
    ...(further.length > 0 && { x_capabilities: further }),
    context_window: Math.max(one.context_window, other.context_window),
    size_mb: Math.max(one.size_mb, other.size_mb),
    runtime_profile: one.runtime_profile === other.runtime_profile ? one.runtime_profile : "auto",
    ...(one.apple_mlx === true && other.apple_mlx === true ? { apple_mlx: true as const } : {}),
    ...(agreed.length > 0 && { details: Object.fromEntries(agreed.map((name) => [name, details[name]])) }),
  };
}

/** The most models of a machine that one line of the log names. */
const leftOutToldMax = 5;

/** A machine's models as it tells them, and why others of its list are left out: `llama3: created: Too big: …`. */
export interface ReadCatalogue {
  readonly catalogue: Catalogue;
  readonly leftOut: readonly string[];
}

/** Reads a machine's list of models. A model that the contract does not allow is left out, and the others stay. */
export function readCatalogue(text: string): ReadCatalogue | undefined {
  const told = jsonIn(text);
  if (!Array.isArray(told) || told.length > modelsPerMachineMax) return undefined;
  const read = told.map((each: unknown) => ({ each, ...offeredModelSchema.safeParse(each) }));
  return {
    catalogue: read.flatMap(({ data }) => data ?? []),
    leftOut: read.flatMap(({ each, error }) => {
      const [problem] = error?.issues ?? [];
      if (problem === undefined) return [];
      const id = offeredModelSchema.pick({ id: true }).safeParse(each).data?.id ?? "a model without a valid id";
      return [`${id}: ${problem.path.join(".")}: ${problem.message}`];
    }),
  };
}

/** Asks one boot of a machine for its current catalogue, and waits at most `withinMs`. */
export async function askCatalogue(options: {
  readonly jobs: OpenJobs;
  readonly target: Target;
  readonly withinMs: number;
  readonly clock: Clock;
  /** Where given, it is told which models are left out of the machine's list. */
  readonly log?: Pick<Log, "warn">;
}): Promise<Catalogue> {
  const { jobs, target, withinMs, clock } = options;
  const message = "The GPU machine did not answer in time.";
  using late = abortAfter(clock, withinMs, () => new Fault("agent_offline", { message }));
  const reader = new RecordReader({ textMax: limits.catalogueBytesMax, broken: unreadable });
  let answer: ReadCatalogue | undefined;
  const outcome = await jobs.run({
    target,
    head: { id: newToken(), kind: "models", remainingMs: Math.ceil(withinMs) },
    body: new Uint8Array(),
    acceptWithinMs: withinMs,
    owner: recordsOf((payload) => {
      for (const { text } of reader.read(payload)) answer = readCatalogue(text);
    }),
    signal: late.signal,
  });
  if (outcome.kind !== "end") throw outcome.fault;
  if (answer === undefined) throw unreadable("no list of models");
  const { catalogue, leftOut } = answer;
  if (leftOut.length > 0) {
    const told = { machine: target.machine, models: leftOut.slice(0, leftOutToldMax), count: leftOut.length };
    options.log?.warn(told, "models of a machine are left out: the contract does not allow what it says of them");
  }
  return catalogue;
}

function unreadable(what: string): Fault {
  return new Fault("upstream_error", {
    message: "The machine sent an invalid list of models.",
    internal: `the machine sent ${what}`,
  });
}
