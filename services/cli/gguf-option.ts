import { Option } from "commander";
import type { Environment } from "#shared/process/config.ts";

/** The values of `--gguf`, one for each use of the option. */
export interface GgufGiven {
  readonly gguf?: readonly string[];
}

/** Makes the option that serves model files without a model server, for commands that start an agent. */
export function ggufOption(): Option {
  const gather = (file: string, before: readonly string[] = []): readonly string[] => [...before, file];
  const what = "serve a GGUF file, or several with commas between (TRUNKLINE_GGUF); may be said more than once";
  return new Option("--gguf <file>", what).argParser(gather);
}

/** Returns the environment with the values of `--gguf`, which override its own. */
export function withGguf(environment: Environment, { gguf }: GgufGiven): Environment {
  return gguf === undefined ? environment : { ...environment, TRUNKLINE_GGUF: gguf.join(",") };
}
