import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { z } from "zod";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import {
  type Capabilities,
  capabilities,
  type FurtherAbility,
  furtherAbilities,
  modelsPerMachineMax,
  type OfferedModel,
  offeredModel,
} from "#shared/protocol/model.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { DescribedModel, Runtime } from "../runtimes/runtime.ts";

/** A model that this machine offers, and the runtime that runs it. */
export interface ServedModel {
  readonly runtime: Runtime;
  /** The id by which the runtime knows the model. */
  readonly ownId: string;
  readonly model: OfferedModel;
  /** Jobs of the same lane share its slots. */
  readonly lane: string;
}

/** The models that this machine offers now, and the runtimes that run them. */
export class ModelSet {
  readonly served: readonly ServedModel[];
  readonly catalogue: readonly OfferedModel[];
  readonly runtimes: readonly Runtime[];
  /** Changes whenever the catalogue does, except for which models are loaded: presence says that. */
  readonly digest: string;
  /** Jobs that could run at once when the offer was made, without loading another model. */
  readonly slots: number;
  readonly byId: ReadonlyMap<string, ServedModel>;
  readonly #loaded: string;

  constructor(runtimes: readonly Runtime[], served: readonly ServedModel[]) {
    this.runtimes = runtimes;
    // A model that a runtime lists twice is offered once.
    const once = new Map(served.map((each) => [each.model.id, each]));
    this.served = [...once.values()].slice(0, modelsPerMachineMax);
    this.catalogue = this.served.map(({ model }) => model);
    const lasting = this.catalogue.map(({ loaded, ...model }) => ({ ...model, tellsLoaded: loaded !== undefined }));
    this.digest = createHash("sha256").update(JSON.stringify(lasting)).digest("hex").slice(0, 24);
    this.#loaded = JSON.stringify(this.catalogue.filter(({ loaded }) => loaded).map(({ id }) => id));
    this.slots = runtimes.reduce((sum, runtime) => sum + runtime.slots * this.#modelsAtOnce(runtime), 0);
    this.byId = new Map(this.served.map((each) => [each.model.id, each]));
  }

  /** The names of all runtimes that answer, as presence reports them. */
  get names(): string {
    return [...new Set(this.runtimes.map(({ name }) => name))].join(", ");
  }

  #modelsAtOnce(runtime: Runtime): number {
    if (!runtime.slotsPerModel) return 1;
    const loaded = this.served.filter((each) => each.runtime === runtime && each.model.loaded);
    return Math.max(1, loaded.length);
  }

  /** True if the other offer has the same runtimes, catalogue, models in memory and slots. */
  equals(other: ModelSet): boolean {
    const isSameSize = this.runtimes.length === other.runtimes.length;
    const same = isSameSize && this.digest === other.digest && this.#loaded === other.#loaded;
    return same && this.slots === other.slots && this.runtimes.every((runtime, at) => runtime === other.runtimes[at]);
  }
}

/** Defaults where neither runtime nor operator reports a capability: a model that completes text, in a small window. */
const capabilitiesDefault: Capabilities = {
  completion: true,
  vision: false,
  embedding: false,
  tools: false,
  thinking: false,
};
const contextTokensDefault = 4_096;

const digestCharactersMax = 128;

/**
 * Returns a model as the machine offers it: the runtime's description, overridden by the operator's settings, with
 * defaults for the rest. Returns undefined for a model that does not fit the contract or has no capability.
 */
export function completeModel(facts: {
  readonly id: string;
  readonly described: DescribedModel;
  readonly settings: ModelSettings | undefined;
  readonly runtime: string;
  /** True if the runtime counts the tokens of prompts. */
  readonly counts?: boolean | undefined;
  /** Returns when this machine first saw the model, for runtimes that report no possible creation time. */
  readonly firstSeenSeconds: () => number;
}): OfferedModel | undefined {
  const { id, described, settings = {}, runtime, counts, firstSeenSeconds } = facts;
  const able = completeCapabilities(described, settings);
  const further = settings.x_capabilities ?? described.furtherAbilities ?? [];
  if (!further.some(isPurpose) && !Object.values(able).includes(true)) return undefined;
  const digest = settings.digest ?? described.digest;
  const sizeMb = described.sizeBytes === undefined ? 0 : Math.round(described.sizeBytes / 1_000_000);
  const completed = offeredModel.safeParse({
    id,
    object: "model",
    created: offeredModel.shape.created.safeParse(described.createdSeconds).data ?? firstSeenSeconds(),
    owned_by: settings.owned_by ?? described.ownedBy,
    capabilities: able,
    ...(further.length > 0 && { x_capabilities: further }),
    context_window: settings.context_window ?? (described.contextTokens || contextTokensDefault),
    size_mb: settings.size_mb ?? sizeMb,
    runtime_profile: described.onAppleMlx ? "apple-mlx" : "auto",
    ...(described.onAppleMlx && { apple_mlx: true }),
    runtime,
    ...(digest && { digest: digest.slice(0, digestCharactersMax) }),
    ...(described.loaded !== undefined && { loaded: described.loaded }),
    ...(Object.values(described.details ?? {}).some(Boolean) && { details: described.details }),
    ...(Object.values(described.sampling ?? {}).some(Number.isFinite) && { sampling: described.sampling }),
    ...(counts === true && able.completion && { counts }),
  });
  return completed.success ? completed.data : undefined;
}

/** Completes the capabilities. A model that is known to embed, or for a further ability, is not assumed to chat as well. */
function completeCapabilities(
  { capabilities: reported, furtherAbilities: told = [] }: Pick<DescribedModel, "capabilities" | "furtherAbilities">,
  settings: ModelSettings,
): Capabilities {
  const given = { ...withoutUndefined(reported), ...withoutUndefined(settings.capabilities ?? {}) };
  const further = settings.x_capabilities ?? told;
  return { ...capabilitiesDefault, completion: given.embedding !== true && !further.some(isPurpose), ...given };
}

/** True if an ability may be all that a model is for. */
function isPurpose(ability: FurtherAbility): boolean {
  return ability !== "tokenize";
}

function withoutUndefined(partial: {
  readonly [Key in keyof Capabilities]?: boolean | undefined;
}): Partial<Capabilities> {
  return Object.fromEntries(Object.entries(partial).filter(([, value]) => value !== undefined));
}

/** The operator's settings of a model. They override what its runtime reports. */
const modelSettings = z.strictObject({
  capabilities: capabilities.partial().strict().optional(),
  x_capabilities: z.array(z.enum(furtherAbilities)).optional(),
  context_window: z.int().positive().optional(),
  size_mb: z.int().nonnegative().optional(),
  owned_by: z.string().min(1).max(100).optional(),
  digest: offeredModel.shape.digest,
});
type ModelSettings = z.infer<typeof modelSettings>;

/** The settings file: keys are model ids, or patterns in which `*` stands for any characters. */
export const modelSettingsFile = z.record(z.string().min(1), modelSettings);
export type ModelSettingsFile = z.infer<typeof modelSettingsFile>;

/** Reads the settings file, or fails the start with the first problem in it. */
export function readModelSettings(file: string): ModelSettingsFile {
  const fail = (problem: string): never => {
    throw new StartFailure(exitCodes.config, `The file that TRUNKLINE_MODELS_FILE names ${problem}: ${file}`);
  };
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return fail("cannot be read");
  }
  const value = jsonIn(text);
  if (value === undefined) return fail("is not JSON");
  const parsed = modelSettingsFile.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path = [], message = "" } = parsed.error.issues[0] ?? {};
  return fail(`does not work (${path.join(" → ")}: ${message})`);
}

/** Returns the settings of one model: those of its own id, or else those of the first pattern that matches. */
export function settingsOf(file: ModelSettingsFile, id: string): ModelSettings | undefined {
  if (Object.hasOwn(file, id)) return file[id];
  return Object.entries(file).find(([pattern]) => fits(pattern, id))?.[1];
}

function fits(pattern: string, id: string): boolean {
  const pieces = pattern.split("*").map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${pieces.join(".*")}$`, "s").test(id);
}

/**
 * Bounds the remembered ids, many times the models that a machine may offer. A runtime that invents more names makes
 * all ids be assigned anew.
 */
const idsMax = 50_000;

/**
 * Gives each model of a machine a unique id. The first runtime that offers an id keeps it. The same id at another
 * runtime gets that runtime's name as a suffix: `qwen3:8b` is also `qwen3:8b-vllm`. An id stays with its model as long
 * as the agent runs, whichever runtime comes or goes.
 */
export class UniqueIds {
  readonly #given = new Map<string, string>();
  readonly #holders = new Map<string, string>();

  idFor(model: { readonly location: string; readonly runtime: string; readonly id: string }): string {
    const holder = `${model.location}\n${model.id}`;
    const given = this.#given.get(holder);
    if (given !== undefined) return given;
    if (this.#given.size >= idsMax) {
      this.#given.clear();
      this.#holders.clear();
    }
    const id = this.#firstFree(model);
    this.#given.set(holder, id);
    this.#holders.set(id, holder);
    return id;
  }

  #firstFree({ id, runtime }: { readonly id: string; readonly runtime: string }): string {
    if (!this.#holders.has(id)) return id;
    // The port of a host, as in `host:5000/model`, is no variant.
    const hasVariant = id.lastIndexOf(":") > id.lastIndexOf("/");
    const qualified = `${id}${hasVariant ? "-" : ":"}${runtime}`;
    for (let copy = 1; ; copy += 1) {
      const candidate = copy === 1 ? qualified : `${qualified}-${copy}`;
      if (!this.#holders.has(candidate)) return candidate;
    }
  }
}
