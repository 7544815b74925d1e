import type { Capabilities } from "#shared/model/model.ts";
import { honouring, honouringInTexts } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";
import {
  type ModelFiles,
  readModelFiles,
  templateTakesTools,
  templateThinks,
  tokenCount,
  trainedTokens,
} from "./model-files.ts";
import { byPlacedId, openAiModelList, organisationIn } from "./openai-models.ts";
import { modelsChoice, type OpenAiProfile, type OpenAiServer, type ServedModel } from "./openai-profile.ts";

/** The server of mlx-lm. It ignores unknown fields, and knows fewer fields than other servers. */
export const mlxLm: OpenAiProfile = {
  kind: "mlx-lm",
  name: "mlx-lm",
  honoured: honouring("logit_bias"),
  answersSeveral: false,
  takesImages: false,
  prefill: "never",
  always: {},
  tools: modelsChoice,
  takesParallelToolCalls: false,
  responseFormat: (format) => format,
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
  diesOfUnknownTokens: true,
  dropsUnreadableCalls: true,
  mayIgnoreLogprobs: false,
  texts: {
    honoured: honouringInTexts("logit_bias"),
    // After an empty text, mlx-lm would never answer any request again.
    takesEmpty: false,
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

/** The slots of mlx-lm. It batches requests and reports no limit; a few share one machine's memory well. */
const mlxLmSlotsDefault = 4;

interface MlxLmOptions {
  readonly connection: RuntimeConnection;
  readonly platform: string;
  readonly hubFolder: string;
}

/**
 * One server of mlx-lm. It lists names only. Other facts are read from the models' own files, if they are on this host.
 */
export class MlxLmServer implements OpenAiServer {
  readonly profile = mlxLm;
  readonly slots = mlxLmSlotsDefault;
  readonly embeds = false;
  readonly #options: MlxLmOptions;
  #nameById: ReadonlyMap<string, string> = new Map();
  #filesByName: ReadonlyMap<string, ModelFiles | undefined> = new Map();

  constructor(options: MlxLmOptions) {
    this.#options = options;
  }

  modelOf(id: string): ServedModel {
    const name = this.#nameById.get(id) ?? id;
    const files = this.#filesByName.get(name);
    return { name, tokenCount: files && tokenCount(files) };
  }

  async catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]> {
    const { connection, platform } = this.#options;
    const { data } = await connection.ask(openAiModelList, { path: "/v1/models", signal });
    const listed = [...byPlacedId(data)].map(([id, { id: name }]) => ({ id, name }));
    const read = await Promise.all(listed.map(async (one) => ({ ...one, files: await this.#filesOf(one.name) })));
    this.#nameById = new Map(read.map(({ id, name }) => [id, name]));
    this.#filesByName = new Map(read.map(({ name, files }) => [name, files]));
    return read.map(({ id, files }) => ({
      id,
      ownedBy: organisationIn(id) ?? "mlx-lm",
      capabilities: capabilitiesOf(files),
      contextTokens: files && trainedTokens(files),
      sizeBytes: files?.sizeBytes,
      onAppleMlx: platform === "darwin",
    }));
  }

  /** Returns the files of a model. Missing files are looked up again, because a model may be on its way. */
  async #filesOf(name: string): Promise<ModelFiles | undefined> {
    return this.#filesByName.get(name) ?? (await readModelFiles(name, this.#options.hubFolder));
  }
}

function capabilitiesOf(files: ModelFiles | undefined): Partial<Capabilities> {
  const always = { completion: true, vision: false, embedding: false };
  const template = files?.chatTemplate;
  if (template === undefined) return always;
  return { ...always, tools: templateTakesTools(template), thinking: templateThinks(template) };
}
