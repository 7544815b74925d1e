import { homedir, hostname } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import {
  commaList,
  ConfigFailure,
  isSecret,
  natsSecurityOf,
  onOff,
  processSettings,
  readConfig,
  secret,
  urlList,
  variableOf,
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
  machine: machineName.optional(),
  runtime: z.enum(runtimeKinds, `must be one of ${runtimeKinds.join(", ")}`).default("auto"),
  runtimeUrl: urlList(["http:", "https:"]).pipe(commaList).default([]),
  /** The API key of runtimes that were started with one. A gateway as its own runtime would pass each job to itself. */
  runtimeKey: secret(
    z
      .string()
      .refine((key) => !key.startsWith("trunkline_"), "must be a model server's key, and is one of Trunkline itself")
      .optional(),
  ),
  gguf: commaList.default([]),
  ggufContext: wholeNumber(256, 10_000_000).optional(),
  engineDir: z.string().optional(),
  modelsFile: z.string().optional(),
  manage: manageList.default([]),
  modelMemoryMb: wholeNumber(1, 100_000_000).optional(),
  /** With `on` the agent proves which begun answers its models go on with. */
  continue: onOff.default(true),
  stateDir: z.string().default(".trunkline"),
  scriptedModels: commaList
    .refine(
      (names) => names.every((name) => scriptedModelIds.includes(name)),
      `must name some of ${scriptedModelIds.join(", ")}, with commas between`,
    )
    .optional(),
  firstTokenMs: waitMs.optional(),
  loadWaitMs: waitMs.optional(),
  noProgressMs: waitMs.optional(),
  slots: wholeNumber(1, 10_000).optional(),
  queueMax: wholeNumber(0, 10_000).default(64),
});

type AgentSettings = z.output<typeof settings>;

/** The names of an agent's settings, and those of them that are secrets. */
export const agentSettingNames = {
  all: Object.keys(settings.shape).map(variableOf),
  secret: new Set(
    Object.entries<z.ZodType>(settings.shape).flatMap(([name, field]) => (isSecret(field) ? [variableOf(name)] : [])),
  ),
};

/** Refuses combinations of settings that the schema of single settings cannot check. */
function assertSense({ runtime, runtimeUrl, gguf }: AgentSettings): void {
  if (runtime === "openai" && runtimeUrl.length === 0) {
    throw new ConfigFailure([
      "TRUNKLINE_RUNTIME=openai needs TRUNKLINE_RUNTIME_URL: nobody knows where such a server usually is",
    ]);
  }
  if (runtime === "scripted" && runtimeUrl.length + gguf.length > 0) {
    throw new ConfigFailure([
      "TRUNKLINE_RUNTIME=scripted is the demonstration alone, without TRUNKLINE_RUNTIME_URL and TRUNKLINE_GGUF",
    ]);
  }
}

/** Returns the folder where models lie on this machine, as far as that is known: Ollama's own, or that of a GGUF file. */
function modelsFolderOf({ gguf: [file] }: AgentSettings, { OLLAMA_MODELS }: Environment) {
  return file === undefined ? (OLLAMA_MODELS ?? join(homedir(), ".ollama")) : dirname(file);
}

/** Reads the settings of an agent from the environment, and adds what follows from them. */
export function agentConfig(environment: Environment) {
  const given = readConfig(settings, environment);
  assertSense(given);
  const { machine, manage, stateDir } = given;
  return Object.freeze({
    ...given,
    natsSecurity: natsSecurityOf(given),
    machine: machine ?? machineNameOf(hostname()),
    /** The name that the environment gives this machine. The site of a paired machine knows better. */
    chosenMachine: machine,
    manage: new Set(manage.filter((word) => word !== "place")),
    /** True if the agent decides which models are in memory. */
    decidesLoads: manage.includes("place"),
    modelsFolder: modelsFolderOf(given, environment),
    sightingsFile: join(stateDir, "models-seen.json"),
    measurementsFile: join(stateDir, "models-measured.json"),
    proofsFile: join(stateDir, "models-continue.json"),
  });
}

export type AgentConfig = ReturnType<typeof agentConfig>;
