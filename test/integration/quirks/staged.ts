import { afterAll, beforeAll } from "vitest";
import { llamaStage, lmStudioStage, mlxStage, ollamaStage, vllmStage, type Stage } from "./stage.ts";

export const everyRuntime = {
  Ollama: () => ollamaStage(),
  vLLM: () => vllmStage(),
  "llama-server": () => llamaStage(),
  "LM Studio": () => lmStudioStage(),
  "mlx-lm": () => mlxStage(),
} as const;
export type RuntimeName = keyof typeof everyRuntime;

/** The stages of a test file, put up before its tests and taken down after them. */
export function staged<Name extends string>(
  makers: Readonly<Record<Name, () => Promise<Stage>>>,
): (name: Name) => Stage {
  const stages = new Map<Name, Stage>();
  beforeAll(async () => {
    for (const name of Object.keys(makers) as Name[]) stages.set(name, await makers[name]());
  });
  afterAll(async () => {
    for (const each of stages.values()) await each[Symbol.asyncDispose]();
  });
  return (name) => {
    const stage = stages.get(name);
    if (stage === undefined) throw new Error(`there is no stage for ${name} yet`);
    return stage;
  };
}
