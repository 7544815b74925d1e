import { Fault } from "#shared/fault/fault.ts";
import type { Capabilities } from "#shared/protocol/model.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import { firstImage, honouring, honouringInTexts, modelsChoice } from "../refuse-unsupported.ts";
import { type ModelFiles, readModelFiles, templateTakesTools, templateThinks } from "./model-files.ts";
import { byPlacedId, openAiModelList, organisationIn } from "./openai-models.ts";
import {
  plainServer,
  type OpenAiProfile,
  type OpenAiServer,
  type RuntimeModel,
  type OpenAiServerOptions,
} from "./openai-profile.ts";

/** The server of mlx-lm. It ignores unknown fields, and knows fewer fields than other servers. */
export const mlxLm: OpenAiProfile = {
  ...plainServer,
  kind: "mlx-lm",
  honoured: honouring("logit_bias", "chat_template_kwargs"),
  sampling: { top_k: "top_k", min_p: "min_p", repeat_penalty: "repetition_penalty" },
  prefill: "never",
  tools: modelsChoice,
  takesParallelToolCalls: false,
  // mlx-lm has no field for thinking, and passes these arguments to the model's template.
  thinking: (effort) => ({
    chat_template_kwargs: effort === "none" ? { enable_thinking: false } : { reasoning_effort: effort },
  }),
  reasoningFields: [],
  contentBesideCalls: "",
  answerTokensUnset: 512,
  // mlx-lm removes a stop string from the text, but stops only if the string comes in exactly the expected tokens.
  endsAtStops: false,
  promptTokensIn,
  refuse(body, model) {
    refuseImages(body);
    refuseUnknownTokens(body, model);
  },
  dropsUnreadableCalls: true,
  texts: {
    honoured: honouringInTexts("logit_bias"),
    // After an empty text, mlx-lm would never answer any request again.
    takesEmpty: false,
    refuse: refuseUnknownTokens,
    answerTokensUnset: 512,
    leavesOutMarked: true,
  },
};

/**
 * Reads the prompt's length from a keepalive comment. mlx-lm reads prompts of any length. The length leaves out the
 * part that mlx-lm had read before.
 */
function promptTokensIn(comment: string): number | undefined {
  const total = /^keepalive \d+\/(\d+)$/.exec(comment)?.[1];
  return total === undefined ? undefined : Number(total);
}

function refuseImages(body: ChatBody): void {
  const param = firstImage(body);
  if (param === undefined) return;
  throw new Fault("unsupported_value", { message: "The runtime of this model does not accept images.", param });
}

/**
 * Refuses a bias on a token that the model does not have: mlx-lm crashes on it, which would end the answers of all
 * clients. A model with an unknown token count gets no bias at all.
 */
function refuseUnknownTokens(body: Pick<ChatBody, "logit_bias">, { tokenCount }: RuntimeModel): void {
  const biased = Object.keys(body.logit_bias ?? {});
  if (biased.length === 0) return;
  if (tokenCount === undefined) {
    const message =
      "The runtime of this model does not support 'logit_bias', since it does not tell which tokens there are.";
    throw new Fault("unsupported_parameter", { message, param: "logit_bias" });
  }
  const unknown = biased.find((key) => !/^\d{1,9}$/.test(key) || Number(key) >= tokenCount);
  if (unknown === undefined) return;
  const message = `'logit_bias' names ${unknown.slice(0, shownMax)}, which is no token of this model.`;
  throw new Fault("invalid_value", { message, param: "logit_bias" });
}

const shownMax = 32;

/** The slots of mlx-lm. It batches requests and reports no limit; a few share one machine's memory well. */
const mlxLmSlotsDefault = 4;

/**
 * Returns one server of mlx-lm. It lists names only. Other facts are read from the models' own files, if they are on this
 * host.
 */
export function openMlxLm({ connection, platform, hubFolder }: OpenAiServerOptions): OpenAiServer {
  let filesByName: ReadonlyMap<string, ModelFiles | undefined> = new Map();
  return {
    profile: mlxLm,
    slots: mlxLmSlotsDefault,
    guessesSlots: true,
    embeds: false,
    async catalogue(signal) {
      const { data } = await connection.ask(openAiModelList, { path: "/v1/models", signal });
      const described = [...byPlacedId(data)].map(async ([id, { id: name }]) => {
        // Missing files are looked up again, because a model may be on its way.
        const files = filesByName.get(name) ?? (await readModelFiles(name, hubFolder));
        return {
          id,
          name,
          files,
          tokenCount: files?.tokenCount,
          ownedBy: organisationIn(id) ?? "mlx-lm",
          capabilities: capabilitiesOf(files),
          contextTokens: files?.trainedTokens,
          sizeBytes: files?.sizeBytes,
          onAppleMlx: platform === "darwin",
        };
      });
      const models = await Promise.all(described);
      filesByName = new Map(models.map(({ name, files }) => [name, files]));
      return models;
    },
  };
}

function capabilitiesOf(files: ModelFiles | undefined): Partial<Capabilities> {
  const always = { completion: true, vision: false, embedding: false };
  const template = files?.chatTemplate;
  if (template === undefined) return always;
  return { ...always, tools: templateTakesTools(template), thinking: templateThinks(template) };
}
