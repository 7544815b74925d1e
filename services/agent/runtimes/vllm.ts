import { z } from "zod";
import type { Capabilities } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import { Fault } from "#shared/fault/fault.ts";
import { readModelFiles } from "./hugging-face-folder.ts";
import { openAiModelList, organisationIn, type ListedModel } from "./openai-model-list.ts";
import type { OpenAiServer } from "./openai-server.ts";
import { PatientProbes } from "./patient-probes.ts";
import type { RuntimeConnection } from "./runtime-connection.ts";
import type { DescribedModel } from "./runtime.ts";
import { vllm, vllmSlotsDefault } from "./vllm-profile.ts";

interface VllmOptions {
  readonly connection: RuntimeConnection;
  readonly clock: Clock;
  readonly hubFolder: string;
}

type Probed = Pick<Partial<Capabilities>, "completion" | "embedding" | "tools">;

/**
 * One vLLM. It tells nothing of what its model can do, so each model is asked for the shortest of answers once: a chat
 * with a tool, which a server without `--enable-auto-tool-choice` refuses before it costs anything. A server that did
 * not answer in between may have been started anew, and is asked again.
 */
export class VllmServer implements OpenAiServer {
  readonly profile = vllm;
  readonly slots = vllmSlotsDefault;
  readonly embeds = true;
  readonly #options: VllmOptions;
  readonly #sizes = new Map<string, number | undefined>();
  readonly #probes: PatientProbes<Probed>;

  constructor(options: VllmOptions) {
    this.#options = options;
    this.#probes = new PatientProbes(options);
  }

  modelOf(id: string): { name: string } {
    return { name: id };
  }

  async catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]> {
    try {
      const { data } = await this.#options.connection.ask(openAiModelList, { path: "/v1/models", signal });
      return await Promise.all(data.map((listed) => this.#describe(listed, data, signal)));
    } catch (error) {
      this.#probes.forget();
      throw error;
    }
  }

  async working(signal: AbortSignal): Promise<number> {
    const metrics = await this.#options.connection.text({ path: "/metrics", signal });
    const requests = requestsIn(metrics);
    if (requests !== undefined) return requests;
    throw new Fault("upstream_error", { message: "The runtime does not tell how much it works on." });
  }

  async close(): Promise<void> {
    this.#probes.close();
  }

  /** An adapter has no window of its own, and can do what its base can. */
  async #describe(listed: ListedModel, all: readonly ListedModel[], signal: AbortSignal): Promise<DescribedModel> {
    const base = all.find(({ id }) => id === listed.parent) ?? listed;
    const root = base.root ?? base.id;
    return {
      id: listed.id,
      ownedBy: organisationIn(listed.root ?? listed.id) ?? "vllm",
      capabilities: await this.#probes.find(base.id, (until) => this.#probe(base.id, until), signal),
      contextTokens: listed.max_model_len ?? base.max_model_len ?? undefined,
      sizeBytes: await this.#sizeOf(root),
      loaded: true,
    };
  }

  async #probe(model: string, signal: AbortSignal): Promise<Probed> {
    const { connection } = this.#options;
    try {
      await connection.text({ path: "/v1/chat/completions", body: toolProbe(model), signal });
      return { tools: true };
    } catch (error) {
      if (error instanceof Fault && error.code === "model_does_not_support_tools") return { tools: false };
    }
    // Either it is busy, or it runs a model that does not chat.
    const embeds = z.object({ data: z.array(z.unknown()) });
    await connection.ask(embeds, { path: "/v1/embeddings", body: { model, input: "a" }, signal });
    return { completion: false, embedding: true, tools: false };
  }

  async #sizeOf(root: string): Promise<number | undefined> {
    if (!this.#sizes.has(root)) {
      this.#sizes.set(root, (await readModelFiles(root, this.#options.hubFolder))?.sizeBytes);
    }
    return this.#sizes.get(root);
  }
}

/** The requests that run or wait, over all engines, by what vLLM tells its monitors. */
export function requestsIn(metrics: string): number | undefined {
  const counts = [...metrics.matchAll(/^vllm:num_requests_(?:running|waiting)(?:\{[^\n]*\})? +(\d+(?:\.\d+)?)/gm)];
  return counts.length === 0 ? undefined : counts.reduce((sum, [, count]) => sum + Number(count), 0);
}

function toolProbe(model: string): unknown {
  const noop = { name: "noop", description: "Does nothing.", parameters: { type: "object", properties: {} } };
  return {
    model,
    messages: [{ role: "user", content: "Hi" }],
    tools: [{ type: "function", function: noop }],
    tool_choice: "auto",
    max_tokens: 1,
  };
}
