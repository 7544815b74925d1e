import { Fault } from "#shared/fault/fault.ts";
import type { Capabilities } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import { z } from "zod";
import { capabilitiesByProps, type LlamaServerProps } from "./llama-server-props.ts";
import { readModelFile } from "./model-file.ts";
import { openAiModelList, organisationIn, type ListedModel } from "./openai-model-list.ts";
import type { NamedModel } from "./openai-server.ts";
import { PatientProbes } from "./patient-probes.ts";
import { idByPlace } from "./placed-model.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";

type Probed = Pick<Partial<Capabilities>, "completion" | "embedding">;

/**
 * The one model of a llama-server. One probe finds out if the server was started for embeddings. A server for chats
 * refuses the probe.
 */
export class LlamaServerModel {
  readonly #connection: RuntimeConnection;
  readonly #probes: PatientProbes<Probed>;

  constructor(options: { readonly connection: RuntimeConnection; readonly clock: Clock }) {
    this.#connection = options.connection;
    this.#probes = new PatientProbes(options);
  }

  async describe(props: LlamaServerProps, signal: AbortSignal): Promise<readonly NamedModel[]> {
    const { data } = await this.#connection.ask(openAiModelList, { path: "/v1/models", signal });
    return Promise.all(data.slice(0, 1).map((listed) => this.#describe(listed, props, signal)));
  }

  forget(): void {
    this.#probes.forget();
  }

  close(): void {
    this.#probes.close();
  }

  async #describe(listed: ListedModel, props: LlamaServerProps, signal: AbortSignal): Promise<NamedModel> {
    const { meta } = listed;
    const file = props.model_path ? await readModelFile(props.model_path) : undefined;
    const id = idByPlace(listed.id);
    const model = {
      id,
      createdSeconds: file?.createdSeconds,
      ownedBy: organisationIn(id) ?? "llamacpp",
      capabilities: { ...capabilitiesByProps(props), ...(await this.#purpose(listed.id, props, signal)) },
      contextTokens: meta?.n_ctx ?? props.default_generation_settings?.n_ctx ?? undefined,
      sizeBytes: meta?.size ?? file?.sizeBytes,
      loaded: props.is_sleeping !== true,
    };
    return { name: listed.id, model };
  }

  /** Finds the purpose of the model by a probe. A sleeping model is not woken up for this. */
  async #purpose(model: string, props: LlamaServerProps, signal: AbortSignal): Promise<Probed> {
    if (props.is_sleeping === true) return {};
    const start = JSON.stringify([model, props.model_path, props.build_info, props.default_generation_settings]);
    return this.#probes.find(start, (until) => this.#probe(model, until), signal);
  }

  async #probe(model: string, signal: AbortSignal): Promise<Probed> {
    const embeds = z.object({ data: z.array(z.unknown()) });
    try {
      await this.#connection.ask(embeds, { path: "/v1/embeddings", body: { model, input: "a" }, signal });
      return { completion: false, embedding: true };
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== "unsupported_value") throw error;
      return { completion: true, embedding: false };
    }
  }
}
