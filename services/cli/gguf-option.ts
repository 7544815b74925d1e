import { Option } from "commander";
import type { Environment } from "#shared/process/config.ts";

/** What `--gguf` was given: one entry for each time it was said. */
export interface GgufGiven {
  readonly gguf?: readonly string[];
}

/** Serves model files without any model server; for commands that start an agent. */
export function ggufOption(): Option {
  const gather = (file: string, before: readonly string[] = []): readonly string[] => [...before, file];
  const what = "serve a GGUF file, or several with commas between (TRUNKLINE_GGUF); may be said more than once";
  return new Option("--gguf <file>", what).argParser(gather);
}

/** The environment as it is with what was said on the command line, which wins. */
export function withGguf(environment: Environment, { gguf }: GgufGiven): Environment {
  return gguf === undefined ? environment : { ...environment, TRUNKLINE_GGUF: gguf.join(",") };
}
