import type { ChatBody } from "#shared/protocol/chat-body.ts";

type Settings = Pick<
  ChatBody,
  "max_tokens" | "temperature" | "top_p" | "frequency_penalty" | "presence_penalty" | "seed" | "stop"
>;

/**
 * Returns the request's settings by Ollama's names. It sends no option that makes Ollama reload a model (`num_ctx`,
 * `shift`), and overrides no default of the model.
 */
export function ollamaOptions(body: Settings): Readonly<Record<string, unknown>> {
  return {
    num_predict: body.max_tokens,
    temperature: body.temperature,
    top_p: body.top_p,
    frequency_penalty: body.frequency_penalty,
    presence_penalty: body.presence_penalty,
    seed: body.seed,
    stop: body.stop,
  };
}
