import { join } from "node:path";
import { OwnedChild } from "../../harness/owned-child.ts";
import { until } from "../../harness/until.ts";
import { bareEnvironment, pathProcess, type PathProcess } from "../variants/variant.ts";
import type { EngineSpec } from "./engine.ts";
import type { Reference } from "./references.ts";

/** The process of the simulated engines, seen from the bench. */
export interface Engines extends AsyncDisposable {
  readonly specs: readonly EngineSpec[];
  /** Without `/v1`. */
  readonly urls: readonly string[];
  readonly process: PathProcess;
  referenceUrl(name: Reference): string;
  /** Tells the reference routers which engines are there. */
  setMembers(places: readonly number[]): Promise<void>;
  counts(): Promise<readonly EngineCounts[]>;
}

export interface EngineCounts {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  /** Requests that got their first token, and the sum of the times that they waited for it in the engine. */
  readonly begun: number;
  readonly firstMs: number;
}

export async function startEngines(specs: readonly EngineSpec[], seed: number): Promise<Engines> {
  const args = [join(import.meta.dirname, "run-engines.ts"), JSON.stringify({ seed, specs })];
  const child = await OwnedChild.start({ binary: process.execPath, args, environment: bareEnvironment() });
  const printed = async (): Promise<string | false> => {
    if (child.ended) throw new Error(`the engines ended: ${await child.stderr()}`);
    const text = await child.stdout();
    return text.endsWith("\n") && text;
  };
  const text = await until(printed, { what: "the engines to listen", timeoutMs: 30_000 });
  const [url = "", ...urls] = (JSON.parse(text) as readonly number[]).map((port) => `http://127.0.0.1:${port}`);
  const ask = async (path: string, init?: RequestInit): Promise<unknown> => {
    const response = await fetch(`${url}/${path}`, init);
    if (!response.ok) throw new Error(`the engines answer ${response.status} to ${path}`);
    return response.json();
  };
  return {
    specs,
    urls,
    process: pathProcess("engines", child),
    referenceUrl: (name) => `${url}/${name}/v1`,
    setMembers: async (places) => void (await ask("members", { method: "POST", body: JSON.stringify(places) })),
    counts: async () => (await ask("counts")) as readonly EngineCounts[],
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
