import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { ManageProgress } from "#shared/protocol/job-bodies.ts";
import { JsonLines } from "../read-stream.ts";
import type { OllamaCatalogue } from "./ollama-catalogue.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { ManageRun, Runtime } from "../runtime.ts";

const pullLine = z.object({
  status: z.string().optional(),
  completed: z.int().nonnegative().nullish(),
  total: z.int().nonnegative().nullish(),
  error: z.string().optional(),
});

/** Ollama's `keep_alive` for a model that an operator loaded: it stays until it is unloaded. */
const forGood = -1;

/** Returns the actions on Ollama's models. */
export function ollamaManages(options: {
  readonly connection: RuntimeConnection;
  readonly models: OllamaCatalogue;
}): NonNullable<Runtime["manages"]> {
  const { connection, models } = options;

  async function pull({ model, signal, onProgress }: ManageRun): Promise<void> {
    let succeeded = false;
    const read = (line: unknown): void => {
      const progress = pullProgress(line);
      succeeded = progress.status === "success";
      onProgress(progress);
    };
    const lines = new JsonLines();
    const body = connection.stream({ path: "/api/pull", body: { model }, signal });
    await body.read((piece) => {
      lines.push(piece, read);
      return undefined;
    });
    lines.end(read);
    if (!succeeded)
      throw new Fault("upstream_error", { message: "The runtime stopped before the model was complete." });
  }

  async function remove({ model, signal, onProgress }: ManageRun): Promise<void> {
    const { name } = await models.find(model, signal);
    await connection.text({ path: "/api/delete", method: "DELETE", body: { model: name }, signal });
    onProgress({ status: "removed" });
  }

  /**
   * Loads or unloads a model. A request without a prompt makes Ollama load it; with a `keep_alive` of 0 Ollama unloads
   * it.
   */
  async function keep({ model, signal, onProgress }: ManageRun, keepAlive: number, status: string): Promise<void> {
    const { name, show } = await models.find(model, signal);
    const [path, nothing] = show.capabilities.completion ? ["/api/generate", {}] : ["/api/embed", { input: [] }];
    await connection.text({ path, body: { model: name, keep_alive: keepAlive, stream: false, ...nothing }, signal });
    onProgress({ status });
  }

  return {
    pull,
    remove,
    load: (run) => keep(run, forGood, "loaded"),
    unload: (run) => keep(run, 0, "unloaded"),
  };
}

function pullProgress(line: unknown): ManageProgress {
  const parsed = pullLine.safeParse(line);
  if (!parsed.success) throw new Fault("upstream_error", { message: "The runtime sent an invalid line." });
  const { status = "", completed, total, error } = parsed.data;
  if (error !== undefined) {
    throw pullFault(error);
  }
  return {
    status: status.slice(0, 500),
    ...(typeof total === "number" && { totalBytes: total, completedBytes: Math.min(completed ?? 0, total) }),
  };
}

function pullFault(error: string): Fault {
  if (/no such host|dial tcp|network is unreachable|connection refused|i\/o timeout|tls: |proxyconnect/i.test(error)) {
    return new Fault("upstream_error", {
      message: "The runtime could not reach its model registry.",
      internal: "the machine cannot reach the registry, or the model's name contains an unknown registry",
    });
  }
  if (/not found|does not exist|manifest unknown/i.test(error)) {
    return new Fault("model_not_found", { message: "The registry has no model with this name.", param: "model" });
  }
  return new Fault("upstream_error", {
    message: "The runtime could not pull the model.",
    internal: "its log says why",
  });
}
