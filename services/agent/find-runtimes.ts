import { existsSync } from "node:fs";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { AgentConfig } from "./config.ts";
import { runtimeSources } from "./models/detect.ts";

/** A place where an agent looks for a model server, as it is now. */
export interface PlaceOfRuntime {
  /** An address or a file. */
  readonly place: string;
  /** Undefined when no model server is there. */
  readonly runtime?: string;
  /** The number of its models. Undefined when it does not list them. */
  readonly models?: number;
  /** True if the server reports neither a limit nor its load. */
  readonly guessesSlots?: boolean | undefined;
  /** The reason for which there is no model server, or no list of models. */
  readonly problem?: string;
}

/** Looks at all places where an agent with this configuration looks, once and without a change to any. */
export async function findRuntimes(
  config: AgentConfig,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<readonly PlaceOfRuntime[]> {
  const { runtime: kind, runtimeUrl: urls, runtimeKey: apiKey, gguf, slots } = config;
  if (kind === "scripted") return [{ place: "this process", runtime: "the demonstration" }];
  const files = gguf.map((file) =>
    existsSync(file) ? { place: file, runtime: "a GGUF file" } : { place: file, problem: "the file is missing" },
  );
  if (files.length > 0 && urls.length === 0) return files;
  const sources = runtimeSources({ kind, urls, apiKey, slots, clock });
  const found = await Promise.all(
    sources.map(async (source): Promise<PlaceOfRuntime> => {
      const { place } = source;
      try {
        const sight = await source.look(signal);
        if (sight === "nothing") return { place, problem: "nothing listens there" };
        if (sight === "something-else") return { place, problem: "another server listens there" };
        try {
          const models = await sight.catalogue(signal);
          return { place, runtime: sight.name, models: models.length, guessesSlots: sight.guessesSlots };
        } finally {
          await sight.close?.();
        }
      } catch (error) {
        return { place, problem: Fault.from(error).reason ?? String(error) };
      }
    }),
  );
  return [...files, ...found];
}
