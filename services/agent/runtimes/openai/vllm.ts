import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { Capabilities } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import { honouring, honouringInTexts } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";
import { type ModelFiles, readModelFiles, seesImages, templateThinks } from "./model-files.ts";
import {
  byPlacedId,
  idByPlace,
  type ListedModel,
  openAiModelList,
  organisationIn,
  PatientProbes,
} from "./openai-models.ts";
import { everyChoice, type OpenAiProfile, type OpenAiServer } from "./openai-profile.ts";

/** The temperature below which vLLM always takes the likeliest token. */
const greedyBelow = 1e-5;

/** vLLM honours nearly all of OpenAI's fields. It continues a last message only when it is told to. */
export const vllm: OpenAiProfile = {
  kind: "vllm",
  name: "vLLM",
  honoured: honouring("n", "logprobs", "top_logprobs", "logit_bias", "response_format"),
  answersSeveral: true,
  takesImages: true,
  prefill: "continues",
  always: {},
  tools: everyChoice,
  takesParallelToolCalls: true,
  responseFormat: (format) => format,
  // `reasoning_effort` knows "none" only in newer versions. The switch in the template works in all versions.
  thinking: (effort) =>
    effort === "none"
      ? { chat_template_kwargs: { enable_thinking: false, thinking: false } }
      : { reasoning_effort: effort },
  // The field was renamed; a version ignores the name that it does not know.
  reasoningFields: ["reasoning", "reasoning_content"],
  contentBesideCalls: null,
  endsAtStops: true,
  refusesLimitsOverWindow: true,
  saltsCache: true,
  // vLLM refuses several answers without sampling, because all of them would be the same.
  refusesSeveral: ({ temperature = 1 }) => temperature < greedyBelow,
  dropsUnreadableCalls: false,
  mayIgnoreLogprobs: false,
  texts: {
    // vLLM itself refuses a suffix if the model was not made for one.
    honoured: honouringInTexts("suffix", "logprobs", "logit_bias"),
    takesEmpty: false,
    answerTokensUnset: 16,
  },
};

/** The number of requests that vLLM runs at once by default (`max_num_seqs`). vLLM silently queues more. */
const vllmSlotsDefault = 256;

interface VllmOptions {
  readonly connection: RuntimeConnection;
  readonly clock: Clock;
  readonly hubFolder: string;
}

type Probed = Pick<Partial<Capabilities>, "completion" | "embedding" | "tools">;

/**
 * One vLLM. It does not report the capabilities of its models. `thinking` and `vision` are read from the model's files,
 * if they are on this host. For the other capabilities each model gets one probe, the shortest possible chat with a
 * tool. A server without `--enable-auto-tool-choice` refuses it before it costs anything. A server that failed to
 * answer may have been restarted, and is probed again.
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
    throw new Fault("upstream_error", { message: "The runtime does not report how many requests it runs." });
  }

  async close(): Promise<void> {
    this.#probes.close();
  }

  /**
   * Describes a model. A vLLM adapter, which has a `parent`, has no window of its own and the capabilities of its base
   * model.
   */
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
    // The server is busy, or its model does not chat.
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

/** Returns the running and waiting requests of all engines, from vLLM's metrics. */
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
