import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { Capabilities } from "#shared/model/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import { readModelFile, templateTakesTools, templateThinks } from "./model-files.ts";
import { idByPlace, type ListedModel, openAiModelList, organisationIn, PatientProbes } from "./openai-models.ts";
import type { NamedModel } from "./openai-profile.ts";

const tokens = z.int().positive().nullish().catch(undefined);

/** The fields of llama-server's `/props` that matter here. A router has a `role`, and no properties of a model. */
export const llamaServerProps = z.object({
  role: z.string().nullish().catch(undefined),
  default_generation_settings: z.object({ n_ctx: tokens }).nullish().catch(undefined),
  total_slots: tokens,
  modalities: z.object({ vision: z.boolean() }).partial().nullish().catch(undefined),
  chat_template: z.string().nullish().catch(undefined),
  chat_template_caps: z
    .object({ supports_tools: z.boolean(), supports_tool_calls: z.boolean(), supports_reasoning_effort: z.boolean() })
    .partial()
    .nullish()
    .catch(undefined),
  model_path: z.string().nullish().catch(undefined),
  build_info: z.string().nullish().catch(undefined),
  is_sleeping: z.boolean().nullish().catch(undefined),
});
type LlamaServerProps = z.infer<typeof llamaServerProps>;

/** Returns the capabilities that the server's properties report. `embedding` is not among them. */
export function capabilitiesByProps(props: LlamaServerProps): Partial<Capabilities> {
  const { chat_template: template, chat_template_caps: caps, modalities } = props;
  const tools =
    caps?.supports_tool_calls ?? caps?.supports_tools ?? (template ? templateTakesTools(template) : undefined);
  const thinking = caps?.supports_reasoning_effort || (template ? templateThinks(template) : undefined);
  return {
    ...(modalities?.vision !== undefined && { vision: modalities.vision }),
    ...(tools !== undefined && { tools }),
    ...(thinking !== undefined && { thinking }),
  };
}

/** Reads facts of a model from the arguments with which a router would start it. */
export function describedByArgs(args: readonly string[]): {
  readonly contextTokens?: number;
  readonly capabilities: Partial<Capabilities>;
  readonly modelPath?: string;
} {
  const has = (...names: string[]): boolean => args.some((arg) => names.includes(arg));
  const textOf = (...names: string[]): string | undefined => args[args.findIndex((arg) => names.includes(arg)) + 1];
  const valueOf = (...names: string[]): number => Number(textOf(...names) ?? 0);
  const window = has("-c", "--ctx-size") ? valueOf("-c", "--ctx-size") : 0;
  const shared = has("-np", "--parallel") && !has("-kvu", "--kv-unified") ? valueOf("-np", "--parallel") : 1;
  const embeds = has("--embedding", "--embeddings");
  const modelPath = has("-m", "--model") ? textOf("-m", "--model") : undefined;
  return {
    ...(window > 0 && { contextTokens: Math.floor(window / Math.max(shared, 1)) }),
    ...(modelPath !== undefined && { modelPath }),
    capabilities: {
      ...(embeds && { embedding: true, completion: false }),
      ...(has("--mmproj", "-mm", "--mmproj-url") && { vision: true }),
    },
  };
}

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
