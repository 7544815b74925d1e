import type { Capabilities } from "#shared/model/model.ts";
import { templateTakesTools, templateThinks } from "./chat-template.ts";
import { readModelFiles, tokenCount, trainedTokens, type ModelFiles } from "./hugging-face-folder.ts";
import { mlxLm, mlxLmSlotsDefault } from "./mlx-lm-profile.ts";
import { openAiModelList, organisationIn } from "./openai-model-list.ts";
import type { ServedModel } from "./openai-profile.ts";
import type { OpenAiServer } from "./openai-server.ts";
import { byPlacedId } from "./placed-model.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";

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
