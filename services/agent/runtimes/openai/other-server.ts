import { openAiModelList, organisationIn } from "./openai-model-list.ts";
import type { ServedModel } from "./openai-profile.ts";
import type { OpenAiServer } from "./openai-server.ts";
import { otherServer, otherServerSlotsDefault } from "./other-server-profile.ts";
import { byPlacedId } from "./placed-model.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";

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
