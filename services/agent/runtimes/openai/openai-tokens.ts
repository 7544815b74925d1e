import { z } from "zod";
import type { EmitEvents, MediaRun } from "../runtime.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { Served } from "./openai-profile.ts";

const token = z.int().nonnegative();
/** llama-server writes a piece that is no whole character as its bytes. */
const piece = z.union([z.string(), z.array(z.int()).transform((bytes) => Buffer.from(bytes).toString())]);
const tokenAndPiece = z.object({ id: token, piece });
const tokenized = z.object({
  tokens: z.array(z.union([token, tokenAndPiece])),
  token_strs: z.array(z.string()).nullish(),
});
/** The text is `prompt` at vLLM and `content` at llama-server. */
const detokenized = z.union([
  z.object({ prompt: z.string() }),
  z.object({ content: z.string() }).transform(({ content }) => ({ prompt: content })),
]);

/** Asks a server for the tokens of a text, or for the text of tokens, and answers in the shape of vLLM's API. */
export async function openAiTokens(
  { body: { path, fields }, contextWindow, signal, onProgress }: MediaRun,
  { connection, profile, model }: Served & { readonly connection: RuntimeConnection },
  emit: EmitEvents,
): Promise<void> {
  onProgress("prefill");
  const { prompt, add_special_tokens: special = true, return_token_strs: strings = false, ...others } = fields;
  const asked =
    profile.kind === "llama-server"
      ? { content: prompt, add_special: special, with_pieces: strings }
      : { prompt, add_special_tokens: special, return_token_strs: strings };
  const body = { model: model.name, ...others, ...(prompt !== undefined && asked) };
  const answer =
    path === "/detokenize"
      ? await connection.ask(detokenized, { path, body, signal })
      : tokensIn(await connection.ask(tokenized, { path, body, signal }), contextWindow);
  await emit([
    { kind: "text", text: JSON.stringify(answer) },
    { kind: "finish", reason: "stop" },
  ]);
}

function tokensIn({ tokens, token_strs }: z.infer<typeof tokenized>, max_model_len: number) {
  const pieces = tokens.flatMap((each) => (typeof each === "number" ? [] : [each.piece]));
  return {
    count: tokens.length,
    max_model_len,
    tokens: tokens.map((each) => (typeof each === "number" ? each : each.id)),
    token_strs: token_strs ?? (pieces.length > 0 ? pieces : null),
  };
}
