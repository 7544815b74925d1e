import { z } from "zod";
import { wordsIn } from "./asked-chat.ts";
import { windowOf, type FakeOllamaModel } from "./fake-ollama-model.ts";

const asked = z.looseObject({
  messages: z.array(z.looseObject({ role: z.string(), content: z.string(), images: z.array(z.string()).optional() })),
  truncate: z.boolean().optional(),
});
type Message = z.infer<typeof asked>["messages"][number];

/** What Ollama counts an image as. */
const tokensPerImage = 768;

/**
 * The messages that a model gets to read of a chat, or the refusal. Unless it is told not to, Ollama forgets the oldest
 * messages without a word until the rest fits. For these models a word is a token.
 */
export function readInWindow(
  model: FakeOllamaModel,
  body: Readonly<Record<string, unknown>>,
): { readonly read: readonly unknown[] } | { readonly refusal: string } {
  const parsed = asked.safeParse(body);
  if (!parsed.success) return { read: [] };
  const { messages, truncate = true } = parsed.data;
  const window = windowOf(model);
  const tokens = tokensIn(messages);
  if (tokens <= window) return { read: messages };
  if (model.format === "safetensors") return { refusal: tooLongForMlx({ tokens, window }) };
  if (!truncate) return { refusal: tooLong(model, { tokens, window }) };
  const read = [...messages];
  while (tokensIn(read) > window) {
    const oldest = read.findIndex(({ role }, at) => role !== "system" && at < read.length - 1);
    if (oldest < 0) return { refusal: tooLong(model, { tokens, window }) };
    read.splice(oldest, 1);
  }
  return { read };
}

/** Why a prompt is not continued, if it is not. Unless it is told not to, Ollama reads less of one that is too long. */
export function promptRefusal(model: FakeOllamaModel, body: Readonly<Record<string, unknown>>): string | undefined {
  const tokens = wordsIn(String(body["prompt"]));
  const window = windowOf(model);
  if (tokens <= window) return undefined;
  if (model.format === "safetensors") return tooLongForMlx({ tokens, window });
  // Bare prompts are refused by the engine below, whatever the model.
  return body["truncate"] === false ? tooLongBelow({ tokens, window }) : undefined;
}

function tokensIn(messages: readonly Message[]): number {
  const words = messages.reduce((sum, { content }) => sum + wordsIn(content), 0);
  return words + messages.reduce((sum, { images = [] }) => sum + images.length * tokensPerImage, 0);
}

function tooLong(model: FakeOllamaModel, { tokens, window }: { tokens: number; window: number }): string {
  if (model.engine !== "native") {
    return (
      "the prompt is longer than the context length currently available to the model; shorten the prompt, adjust the " +
      "context length in settings, or use a model with a longer context length"
    );
  }
  return tooLongBelow({ tokens, window });
}

function tooLongForMlx({ tokens, window }: { tokens: number; window: number }): string {
  return `input length (${tokens} tokens) exceeds the model's maximum context length (${window} tokens)`;
}

function tooLongBelow({ tokens, window }: { tokens: number; window: number }): string {
  const message = `request (${tokens} tokens) exceeds the available context size (${window} tokens), try increasing it`;
  const counts = { n_prompt_tokens: tokens, n_ctx: window };
  return JSON.stringify({ error: { code: 400, message, type: "exceed_context_size_error", ...counts } });
}
