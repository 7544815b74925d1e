import { honouring, honouringInTexts } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";
import { byPlacedId, openAiModelList, organisationIn } from "./openai-models.ts";
import { everyChoice, type OpenAiProfile, type OpenAiServer, type ServedModel } from "./openai-profile.ts";

/**
 * Any other OpenAI-shaped server. The adapter assumes that it honours the fields that OpenAI does, and checks what its
 * answers can show.
 */
export const otherServer: OpenAiProfile = {
  kind: "openai",
  name: "the OpenAI-shaped server",
  honoured: honouring("logprobs", "top_logprobs", "logit_bias", "response_format"),
  answersSeveral: false,
  takesImages: true,
  prefill: "as-the-template",
  always: {},
  tools: everyChoice,
  takesParallelToolCalls: true,
  responseFormat: (format) => format,
  thinking: (effort) => ({ reasoning_effort: effort }),
  reasoningFields: ["reasoning_content"],
  contentBesideCalls: null,
  endsAtStops: true,
  failsSilently: true,
  dropsUnreadableCalls: false,
  mayIgnoreLogprobs: true,
  texts: { honoured: honouringInTexts("logprobs", "logit_bias"), takesEmpty: true, answerTokensUnset: 16 },
};

/** The slots of a server of unknown kind: as many as the most common servers run by default. */
const otherServerSlotsDefault = 4;

/** The owner of every model in the list of llama-cpp-python's server, and of no other server. */
const llamaCppPythonOwner = "me";

/** A server that reports only its list of models. The operator declares their capabilities. */
export class OtherServer implements OpenAiServer {
  readonly profile = otherServer;
  readonly embeds = true;
  readonly #connection: RuntimeConnection;
  #nameById: ReadonlyMap<string, string> = new Map();
  /** True for llama-cpp-python's server, which works on one request at a time and leaves a stream for the next. */
  #interrupts = false;

  constructor(options: { readonly connection: RuntimeConnection }) {
    this.#connection = options.connection;
  }

  get slots(): number {
    return this.#interrupts ? 1 : otherServerSlotsDefault;
  }

  modelOf(id: string): ServedModel {
    return { name: this.#nameById.get(id) ?? id, interrupts: this.#interrupts };
  }

  async catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]> {
    const { data } = await this.#connection.ask(openAiModelList, { path: "/v1/models", signal });
    this.#interrupts = data.length > 0 && data.every((model) => model.owned_by === llamaCppPythonOwner);
    const byId = [...byPlacedId(data)];
    this.#nameById = new Map(byId.map(([id, { id: name }]) => [id, name]));
    return byId.map(([id, listed]) => ({
      id,
      ownedBy: listed.owned_by || organisationIn(id) || "openai",
      capabilities: {},
      contextTokens: listed.max_model_len ?? undefined,
    }));
  }
}
