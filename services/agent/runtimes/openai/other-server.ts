import { honouring, honouringInTexts } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import { byPlacedId, openAiModelList, organisationIn } from "./openai-models.ts";
import { plainServer, type OpenAiProfile, type OpenAiServer } from "./openai-profile.ts";

/**
 * Any other OpenAI-shaped server. The adapter assumes that it honours the fields that OpenAI does, and checks what its
 * answers can show.
 */
export const otherServer: OpenAiProfile = {
  ...plainServer,
  kind: "openai",
  honoured: honouring("logprobs", "top_logprobs", "logit_bias", "response_format"),
  prefill: "as-the-template",
  thinking: (effort) => ({ reasoning_effort: effort }),
  failsSilently: true,
  mayIgnoreLogprobs: true,
  texts: { honoured: honouringInTexts("logprobs", "logit_bias"), takesEmpty: true, answerTokensUnset: 16 },
};

/** The slots of a server of unknown kind: as many as the most common servers run by default. */
const otherServerSlotsDefault = 4;

/** The owner of every model in the list of llama-cpp-python's server, and of no other server. */
const llamaCppPythonOwner = "me";

/** Returns a server that reports only its list of models. The operator declares their capabilities. */
export function openOtherServer(connection: RuntimeConnection): OpenAiServer {
  /** True for llama-cpp-python's server, which works on one request at a time and leaves a stream for the next. */
  let interrupts = false;
  return {
    profile: otherServer,
    embeds: true,
    get slots() {
      return interrupts ? 1 : otherServerSlotsDefault;
    },
    async catalogue(signal) {
      const { data } = await connection.ask(openAiModelList, { path: "/v1/models", signal });
      interrupts = data.length > 0 && data.every((model) => model.owned_by === llamaCppPythonOwner);
      return [...byPlacedId(data)].map(([id, listed]) => ({
        id,
        name: listed.id,
        interrupts,
        ownedBy: listed.owned_by || organisationIn(id) || "openai",
        capabilities: {},
        contextTokens: listed.max_model_len ?? undefined,
      }));
    },
  };
}
