import { existsSync } from "node:fs";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { AgentConfig } from "./config.ts";
import { runtimeSources } from "./models/detect.ts";

/** A location where an agent looks for a model server, as it is now. */
export interface LookedAtRuntime {
  /** An address or a file. */
  readonly location: string;
  /** Undefined when no model server is there. */
  readonly runtime?: string;
  /** The number of its models. Undefined when it does not list them. */
  readonly models?: number;
  /** True if the server reports neither a limit nor its load. */
  readonly guessesSlots?: boolean | undefined;
  /** The reason for which there is no model server, or no list of models. */
  readonly problem?: string;
}

/** Looks at all locations where an agent with this configuration looks, once and without a change to any. */
export async function findRuntimes(
  config: AgentConfig,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<readonly LookedAtRuntime[]> {
  const { runtime: kind, runtimeUrl: urls, runtimeKey: apiKey, gguf, slots } = config;
  if (kind === "scripted") return [{ location: "this process", runtime: "the demonstration" }];
  const files = gguf.map((file) =>
    existsSync(file) ? { location: file, runtime: "a GGUF file" } : { location: file, problem: "the file is missing" },
  );
  if (files.length > 0 && urls.length === 0) return files;
  const sources = runtimeSources({ kind, urls, apiKey, slots, clock });
  const found = await Promise.all(
    sources.map(async (source): Promise<LookedAtRuntime> => {
      const { location } = source;
      try {
        const sight = await source.look(signal);
        if (sight === "nothing") return { location, problem: "nothing listens there" };
        if (sight === "something-else") return { location, problem: "another server listens there" };
        try {
          const models = await sight.catalogue(signal);
          return { location, runtime: sight.name, models: models.length, guessesSlots: sight.guessesSlots };
        } finally {
          await sight.close?.();
        }
      } catch (error) {
        return { location, problem: Fault.from(error).reason ?? String(error) };
      }
    }),
  );
  return [...files, ...found];
}
