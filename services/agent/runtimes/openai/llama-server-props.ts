import { z } from "zod";
import type { Capabilities } from "#shared/model/model.ts";
import { templateTakesTools, templateThinks } from "./chat-template.ts";

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
export type LlamaServerProps = z.infer<typeof llamaServerProps>;

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
