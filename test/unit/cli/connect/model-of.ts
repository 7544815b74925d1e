import type { Capabilities, Model } from "#shared/protocol/model.ts";

/** A chat model with tools and a window of 131,072 tokens. */
export function modelOf(
  id: string,
  { window = 131_072, ...able }: { window?: number } & Partial<Capabilities> = {},
): Model {
  const capabilities = { completion: true, vision: false, embedding: false, tools: true, thinking: false, ...able };
  return {
    id,
    object: "model",
    created: 0,
    owned_by: "example",
    capabilities,
    context_window: window,
    size_mb: 0,
    runtime_profile: "auto",
  };
}
