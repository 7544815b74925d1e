import { z } from "zod";
import type { Capabilities } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import { Fault } from "#shared/fault/fault.ts";
import { templateThinks } from "./chat-template.ts";
import { readModelFiles, seesImages, type ModelFiles } from "./hugging-face-folder.ts";
import { openAiModelList, organisationIn, type ListedModel } from "./openai-model-list.ts";
import type { OpenAiServer } from "./openai-server.ts";
import { PatientProbes } from "./patient-probes.ts";
import { byPlacedId, idByPlace } from "./placed-model.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";
import { vllm, vllmSlotsDefault } from "./vllm-profile.ts";

interface VllmOptions {
  readonly connection: RuntimeConnection;
  readonly clock: Clock;
  readonly hubFolder: string;
}

type Probed = Pick<Partial<Capabilities>, "completion" | "embedding" | "tools">;

/**
 * One vLLM. It tells nothing of what its model can do. Whether that thinks or sees is read from its files, where they are
 * on this host. For the rest each model is asked for the shortest of answers once: a chat with a tool, which a server
 * without `--enable-auto-tool-choice` refuses before it costs anything. A server that did not answer in between may have
 * been started anew, and is asked again.
 */
export class VllmServer implements OpenAiServer {
  readonly profile = vllm;
  readonly slots = vllmSlotsDefault;
  readonly embeds = true;
  readonly #options: VllmOptions;
  readonly #files = new Map<string, ModelFiles | undefined>();
  readonly #probes: PatientProbes<Probed>;
  #nameById: ReadonlyMap<string, string> = new Map();

  constructor(options: VllmOptions) {
    this.#options = options;
    this.#probes = new PatientProbes(options);
  }

  modelOf(id: string): { name: string } {
    return { name: this.#nameById.get(id) ?? id };
  }

  async catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]> {
    try {
      const { data } = await this.#options.connection.ask(openAiModelList, { path: "/v1/models", signal });
      const byId = [...byPlacedId(data)];
      this.#nameById = new Map(byId.map(([id, { id: name }]) => [id, name]));
      return await Promise.all(byId.map(([id, listed]) => this.#describe(id, { listed, all: data, signal })));
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
  async #describe(
    id: string,
    facts: { listed: ListedModel; all: readonly ListedModel[]; signal: AbortSignal },
  ): Promise<DescribedModel> {
    const { listed, all, signal } = facts;
    const base = all.find((one) => one.id === listed.parent) ?? listed;
    const root = base.root ?? base.id;
    const probed = await this.#probes.find(base.id, (until) => this.#probe(base.id, until), signal);
    const files = await this.#filesOf(root);
    return {
      id,
      ownedBy: organisationIn(idByPlace(listed.root ?? listed.id)) ?? "vllm",
      capabilities: { ...(files && capabilitiesByFiles(files)), ...probed },
      contextTokens: listed.max_model_len ?? base.max_model_len ?? undefined,
      sizeBytes: files?.sizeBytes,
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

  async #filesOf(root: string): Promise<ModelFiles | undefined> {
    if (!this.#files.has(root)) this.#files.set(root, await readModelFiles(root, this.#options.hubFolder));
    return this.#files.get(root);
  }
}

function capabilitiesByFiles(files: ModelFiles): Pick<Partial<Capabilities>, "vision" | "thinking"> {
  const { chatTemplate: template } = files;
  return { vision: seesImages(files), ...(template !== undefined && { thinking: templateThinks(template) }) };
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
