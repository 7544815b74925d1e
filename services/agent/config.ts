import { hostname } from "node:os";
import { z } from "zod";
import { readConfig, urlList, wholeNumber, type Environment } from "#shared/process/config.ts";
import { processConfig, processSettings, waitMs } from "#shared/process/process-settings.ts";
import { machineName, machineNameOf } from "#shared/protocol/machine-name.ts";
import { runtimeKinds } from "./runtimes/detect.ts";
import { scriptedModelIds } from "./runtimes/scripted-models.ts";

const settings = z.object({
  ...processSettings,
  TRUNKLINE_MACHINE: machineName.optional(),
  TRUNKLINE_RUNTIME: z.enum(runtimeKinds, `must be one of ${runtimeKinds.join(", ")}`).default("auto"),
  TRUNKLINE_RUNTIME_URL: urlList(["http:", "https:"]).optional(),
  TRUNKLINE_SCRIPTED_MODELS: z
    .string()
    .transform((text) => text.split(",").map((name) => name.trim()))
    .refine(
      (names) => names.every((name) => scriptedModelIds.includes(name)),
      `must name some of ${scriptedModelIds.join(", ")}, with commas between`,
    )
    .optional(),
  TRUNKLINE_FIRST_TOKEN_MS: waitMs.optional(),
  TRUNKLINE_NO_PROGRESS_MS: waitMs.optional(),
  TRUNKLINE_SLOTS: wholeNumber(1, 10_000).optional(),
  TRUNKLINE_QUEUE_MAX: wholeNumber(0, 10_000).default(64),
});

/** The settings of an agent, by its own words. */
export function agentConfig(environment: Environment) {
  const given = readConfig(settings, environment);
  return Object.freeze({
    ...processConfig(given),
    machine: given.TRUNKLINE_MACHINE ?? machineNameOf(hostname()),
    runtime: given.TRUNKLINE_RUNTIME,
    runtimeUrl: given.TRUNKLINE_RUNTIME_URL,
    scriptedModels: given.TRUNKLINE_SCRIPTED_MODELS,
    firstTokenMs: given.TRUNKLINE_FIRST_TOKEN_MS,
    noProgressMs: given.TRUNKLINE_NO_PROGRESS_MS,
    slots: given.TRUNKLINE_SLOTS,
    queueMax: given.TRUNKLINE_QUEUE_MAX,
  });
}

export type AgentConfig = ReturnType<typeof agentConfig>;
