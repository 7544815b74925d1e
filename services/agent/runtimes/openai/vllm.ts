import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { Capabilities } from "#shared/protocol/model.ts";
import { honouring, honouringInTexts } from "../refuse-unsupported.ts";
import { type ModelFiles, readModelFiles, templateThinks } from "./model-files.ts";
import {
  byPlacedId,
  idByPlace,
  openAiModelList,
  organisationIn,
  PatientProbes,
  probeEmbedding,
} from "./openai-models.ts";
import { probeTranscription } from "./openai-media.ts";
import { probeRerank } from "./openai-rerank.ts";
import { loadIn } from "./slots-by-load.ts";
import { VllmSleep } from "./vllm-sleep.ts";
import {
  plainServer,
  type OpenAiProfile,
  type OpenAiServer,
  type Probed,
  type OpenAiServerOptions,
} from "./openai-profile.ts";

/** The temperature below which vLLM always takes the likeliest token. */
const greedyBelow = 1e-5;

/** vLLM honours nearly all of OpenAI's fields. It continues a last message only when it is told to. */
export const vllm: OpenAiProfile = {
  ...plainServer,
  kind: "vllm",
  honoured: honouring(
    "n",
    "logprobs",
    "top_logprobs",
    "logit_bias",
    "response_format",
    "chat_template_kwargs",
    "grammar",
    "structured_outputs",
  ),
  sampling: {
    top_k: "top_k",
    min_p: "min_p",
    repeat_penalty: "repetition_penalty",
    stop_token_ids: "stop_token_ids",
    ignore_eos: "ignore_eos",
    min_tokens: "min_tokens",
  },
  answersSeveral: true,
  prefill: "continues",
  form: ({ grammar, structured_outputs: outputs }) => ({
    structured_outputs: outputs ?? (grammar === undefined ? undefined : { grammar }),
  }),
  // `reasoning_effort` knows "none" only in newer versions. The switch in the template works in all versions.
  thinking: (effort) =>
    effort === "none"
      ? { chat_template_kwargs: { enable_thinking: false, thinking: false } }
      : { reasoning_effort: effort },
  // The field was renamed; a version ignores the name that it does not know.
  reasoningFields: ["reasoning", "reasoning_content"],
  refusesLimitsOverWindow: true,
  saltsCache: true,
  tellsTokensSoFar: true,
  // vLLM refuses several answers without sampling, because all of them would be the same.
  refusesSeveral: ({ temperature = 1 }) => temperature < greedyBelow,
  texts: {
    // vLLM itself refuses a suffix if the model was not made for one.
    honoured: honouringInTexts("suffix", "logprobs", "logit_bias"),
    takesEmpty: false,
    answerTokensUnset: 16,
  },
};

/** The number of requests that vLLM runs at once by default (`max_num_seqs`). vLLM silently queues more. */
const vllmSlotsDefault = 256;

const versionAnswer = z.object({ version: z.string() });
const counted = z.object({ count: z.int().nonnegative() });

/**
 * Returns one vLLM. It does not report the capabilities of its models. `thinking` and `vision` are read from the model's
 * files, if they are on this host. For the other capabilities each model gets one probe, the shortest possible chat with
 * a tool. A server without `--enable-auto-tool-choice` refuses it before it costs anything. A server that failed to
 * answer may have been restarted, and is probed again.
 */
export function openVllm(options: OpenAiServerOptions): OpenAiServer {
  const { connection, hubFolder } = options;
  /** By root. Files that are missing may still be on their way here. */
  const filesByRoot = new Map<string, ModelFiles>();
  const probes = new PatientProbes<Probed>(options);
  const sleep = new VllmSleep(connection);
  let models = 0;
  let version: string | undefined;

  async function probe(model: string, signal: AbortSignal): Promise<Probed> {
    const transcribes = await probeTranscription(connection, model, signal);
    const heard = transcribes ? (["transcription"] as const) : [];
    const chats = { ...(transcribes && { completion: true }) };
    try {
      await connection.text({ path: "/v1/chat/completions", body: toolProbe(model), signal });
      return { capabilities: { ...chats, tools: true }, furtherAbilities: heard };
    } catch (error) {
      if (error instanceof Fault && error.code === "model_does_not_support_tools")
        return { capabilities: { ...chats, tools: false }, furtherAbilities: heard };
    }
    // The server is busy, or its model does not chat.
    if (transcribes) return { capabilities: { completion: false, tools: false }, furtherAbilities: heard };
    // A model for embeddings reranks too, by comparing vectors.
    const reranks = await probeRerank(connection, model, signal);
    const probed = probeEmbedding(connection, model, signal).then(() => true);
    const embedding = await (reranks ? probed.catch(() => false) : probed);
    return {
      capabilities: { completion: false, embedding, tools: false },
      furtherAbilities: reranks ? ["rerank"] : [],
    };
  }

  return {
    profile: vllm,
    slots: vllmSlotsDefault,
    embeds: true,
    reranks: true,
    tokenizes: true,
    get version() {
      return version;
    },
    get manages() {
      return sleep.manages(models);
    },
    async catalogue(signal) {
      try {
        const { data } = await connection.ask(openAiModelList, { path: "/v1/models", signal });
        version = (await connection.ask(versionAnswer, { path: "/version", signal }).catch(() => undefined))?.version;
        models = data.length;
        await sleep.look(signal);
        const described = [...byPlacedId(data)].map(async ([id, listed]) => {
          // An adapter has a `parent`, no window of its own, and the capabilities of its base model.
          const base = data.find((one) => one.id === listed.parent) ?? listed;
          // A model that sleeps answers no probe.
          const probed = await (sleep.isSleeping
            ? probes.known(base.id)
            : probes.find(base.id, (until) => probe(base.id, until), signal));
          const root = base.root ?? base.id;
          const files = filesByRoot.get(root) ?? (await readModelFiles(root, hubFolder));
          if (files !== undefined) filesByRoot.set(root, files);
          return {
            id,
            name: listed.id,
            ownedBy: organisationIn(idByPlace(listed.root ?? listed.id)) ?? "vllm",
            capabilities: { ...(files && capabilitiesByFiles(files)), ...probed.capabilities },
            furtherAbilities: probed.furtherAbilities,
            contextTokens: listed.max_model_len ?? base.max_model_len ?? undefined,
            sizeBytes: files?.sizeBytes,
            loaded: !sleep.isSleeping,
          };
        });
        return await Promise.all(described);
      } catch (error) {
        probes.forget();
        sleep.forget();
        throw error;
      }
    },
    async count(request, signal) {
      const { reasoning_effort: effort, chat_template_kwargs: template } = request;
      const body = {
        model: request["model"],
        messages: request["messages"],
        tools: request["tools"],
        continue_final_message: request["continue_final_message"],
        add_generation_prompt: request["add_generation_prompt"],
        // In a chat the effort is one more argument of the template.
        chat_template_kwargs: { ...Object(template), ...(effort !== undefined && { reasoning_effort: effort }) },
      };
      return (await connection.ask(counted, { path: "/tokenize", body, signal })).count;
    },
    async working(signal) {
      const load = loadIn(await connection.text({ path: "/metrics", signal }));
      if (load !== undefined) return load.running + load.waiting;
      throw new Fault("upstream_error", { message: "The runtime does not report how many requests it runs." });
    },
    close: async () => probes.close(),
  };
}

function capabilitiesByFiles(files: ModelFiles): Pick<Partial<Capabilities>, "vision" | "thinking"> {
  const { chatTemplate: template } = files;
  return { vision: files.seesImages, ...(template !== undefined && { thinking: templateThinks(template) }) };
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
