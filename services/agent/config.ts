import { homedir, hostname } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import {
  commaList,
  ConfigFailure,
  isSecret,
  processConfig,
  processSettings,
  readConfig,
  secret,
  urlList,
  waitMs,
  wholeNumber,
  type Environment,
} from "#shared/process/config.ts";
import { machineName, machineNameOf } from "#shared/protocol/identifiers.ts";
import { manageActions } from "#shared/protocol/job-bodies.ts";
import { runtimeKinds } from "./models/detect.ts";
import { scriptedModelIds } from "./runtimes/scripted/scripted.ts";

/**
 * The model actions that the owner of the machine allows operators. With `place` the agent itself decides what is loaded.
 */
const manageWords = [...manageActions, "place"] as const;
type ManageWord = (typeof manageWords)[number];
const manageList: z.ZodType<readonly ManageWord[], string> = commaList.transform((names, context) => {
  const given = names.flatMap((name) => (name === "all" ? manageActions : name));
  const known = (name: string): name is ManageWord => manageWords.some((word) => word === name);
  if (given.every(known)) return given;
  context.addIssue(`must be all, or some of ${manageWords.join(", ")}, with commas between; place is no part of all`);
  return z.NEVER;
});

const settings = z.object({
  ...processSettings,
  TRUNKLINE_MACHINE: machineName.optional(),
  TRUNKLINE_RUNTIME: z.enum(runtimeKinds, `must be one of ${runtimeKinds.join(", ")}`).default("auto"),
  TRUNKLINE_RUNTIME_URL: urlList(["http:", "https:"]).pipe(commaList).optional(),
  /** The API key of runtimes that were started with one. A gateway as its own runtime would pass each job to itself. */
  TRUNKLINE_RUNTIME_KEY: secret(
    z
      .string()
      .refine((key) => !key.startsWith("trunkline_"), "must be a model server's key, and is one of Trunkline itself")
      .optional(),
  ),
  TRUNKLINE_GGUF: commaList.optional(),
  TRUNKLINE_GGUF_CONTEXT: wholeNumber(256, 10_000_000).optional(),
  TRUNKLINE_ENGINE_DIR: z.string().optional(),
  TRUNKLINE_MODELS_FILE: z.string().optional(),
  TRUNKLINE_MANAGE: manageList.optional(),
  TRUNKLINE_MODEL_MEMORY_MB: wholeNumber(1, 100_000_000).optional(),
  TRUNKLINE_CONTINUE: z.enum(["on", "off"], "must be on or off").default("on"),
  TRUNKLINE_STATE_DIR: z.string().default(".trunkline"),
  TRUNKLINE_SCRIPTED_MODELS: commaList
    .refine(
      (names) => names.every((name) => scriptedModelIds.includes(name)),
      `must name some of ${scriptedModelIds.join(", ")}, with commas between`,
    )
    .optional(),
  TRUNKLINE_FIRST_TOKEN_MS: waitMs.optional(),
  TRUNKLINE_LOAD_WAIT_MS: waitMs.optional(),
  TRUNKLINE_NO_PROGRESS_MS: waitMs.optional(),
  TRUNKLINE_SLOTS: wholeNumber(1, 10_000).optional(),
  TRUNKLINE_QUEUE_MAX: wholeNumber(0, 10_000).default(64),
});

/** The names of an agent's settings, and those of them that are secrets. */
export const agentSettingNames = {
  all: Object.keys(settings.shape),
  secret: new Set(
    Object.entries<z.ZodType>(settings.shape).flatMap(([name, field]) => (isSecret(field) ? [name] : [])),
  ),
};

/** Refuses combinations of settings that the schema of single settings cannot check. */
function assertSense(given: z.output<typeof settings>): void {
  const { TRUNKLINE_RUNTIME: kind, TRUNKLINE_RUNTIME_URL: urls, TRUNKLINE_GGUF: files } = given;
  if (kind === "openai" && urls === undefined) {
    throw new ConfigFailure([
      "TRUNKLINE_RUNTIME=openai needs TRUNKLINE_RUNTIME_URL: nobody knows where such a server usually is",
    ]);
  }
  if (kind === "scripted" && (urls !== undefined || files !== undefined)) {
    throw new ConfigFailure([
      "TRUNKLINE_RUNTIME=scripted is the demonstration alone, without TRUNKLINE_RUNTIME_URL and TRUNKLINE_GGUF",
    ]);
  }
}

/** Returns the folder where models lie on this machine, as far as that is known: Ollama's own, or that of a GGUF file. */
function modelsFolderOf({ TRUNKLINE_GGUF: [file] = [] }: z.output<typeof settings>, { OLLAMA_MODELS }: Environment) {
  return file === undefined ? (OLLAMA_MODELS ?? join(homedir(), ".ollama")) : dirname(file);
}

export function agentConfig(environment: Environment) {
  const given = readConfig(settings, environment);
  assertSense(given);
  return Object.freeze({
    ...processConfig(given),
    machine: given.TRUNKLINE_MACHINE ?? machineNameOf(hostname()),
    runtime: given.TRUNKLINE_RUNTIME,
    runtimeUrls: given.TRUNKLINE_RUNTIME_URL ?? [],
    runtimeKey: given.TRUNKLINE_RUNTIME_KEY,
    gguf: given.TRUNKLINE_GGUF ?? [],
    ggufContextTokens: given.TRUNKLINE_GGUF_CONTEXT,
    engineDir: given.TRUNKLINE_ENGINE_DIR,
    modelsFile: given.TRUNKLINE_MODELS_FILE,
    manage: new Set(given.TRUNKLINE_MANAGE?.filter((word) => word !== "place")),
    /** True if the agent decides which models are in memory. */
    places: given.TRUNKLINE_MANAGE?.includes("place") ?? false,
    modelMemoryMb: given.TRUNKLINE_MODEL_MEMORY_MB,
    /** The name that the environment gives this machine. The site of a paired machine knows better. */
    chosenMachine: given.TRUNKLINE_MACHINE,
    modelsFolder: modelsFolderOf(given, environment),
    stateDir: given.TRUNKLINE_STATE_DIR,
    sightingsFile: join(given.TRUNKLINE_STATE_DIR, "models-seen.json"),
    measurementsFile: join(given.TRUNKLINE_STATE_DIR, "models-measured.json"),
    /** True if the agent proves which begun answers its models go on with. */
    continues: given.TRUNKLINE_CONTINUE === "on",
    proofsFile: join(given.TRUNKLINE_STATE_DIR, "models-continue.json"),
    scriptedModels: given.TRUNKLINE_SCRIPTED_MODELS,
    firstTokenMs: given.TRUNKLINE_FIRST_TOKEN_MS,
    loadWaitMs: given.TRUNKLINE_LOAD_WAIT_MS,
    noProgressMs: given.TRUNKLINE_NO_PROGRESS_MS,
    slots: given.TRUNKLINE_SLOTS,
    queueMax: given.TRUNKLINE_QUEUE_MAX,
  });
}

export type AgentConfig = ReturnType<typeof agentConfig>;
