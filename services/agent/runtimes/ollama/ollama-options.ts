import type { ChatBody } from "#shared/protocol/chat-body.ts";

type Settings = Pick<
  ChatBody,
  "max_tokens" | "temperature" | "top_p" | "frequency_penalty" | "presence_penalty" | "seed" | "stop"
>;

/**
 * What a request sets, by Ollama's names. Nothing is sent that makes Ollama load a model anew (`num_ctx`, `shift`), and no
 * default of the model is overruled.
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
