import { openAiModelList, organisationIn } from "./openai-model-list.ts";
import type { OpenAiServer } from "./openai-server.ts";
import { otherServer, otherServerSlotsDefault } from "./other-server-profile.ts";
import { byPlacedId } from "./placed-model.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel } from "../runtime.ts";

/** A server of which nothing is known but its list of models. What they can do is the operator's to say. */
export class OtherServer implements OpenAiServer {
  readonly profile = otherServer;
  readonly slots = otherServerSlotsDefault;
  readonly embeds = true;
  readonly #connection: RuntimeConnection;
  #nameById: ReadonlyMap<string, string> = new Map();

  constructor(options: { readonly connection: RuntimeConnection }) {
    this.#connection = options.connection;
  }

  modelOf(id: string): { name: string } {
    return { name: this.#nameById.get(id) ?? id };
  }

  async catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]> {
    const { data } = await this.#connection.ask(openAiModelList, { path: "/v1/models", signal });
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
