import { readFileSync } from "node:fs";
import { z } from "zod";
import { capabilities } from "#shared/model/model.ts";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";

/** The operator's settings of a model. They override what its runtime reports. */
const modelSettings = z.strictObject({
  capabilities: capabilities.partial().strict().optional(),
  context_window: z.int().positive().optional(),
  size_mb: z.int().nonnegative().optional(),
  owned_by: z.string().min(1).max(100).optional(),
});
export type ModelSettings = z.infer<typeof modelSettings>;

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
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return fail("is not JSON");
  }
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
