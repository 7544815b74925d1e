import { randomBytes } from "node:crypto";

/** A chat whose answer is known beforehand, to the byte, and in which nothing of anybody else's can hide. */
export interface ScriptedChat {
  readonly nonce: string;
  readonly model: string;
  readonly streamed: boolean;
  readonly body: string;
  readonly tokens: number;
}

export interface ScriptedWish {
  readonly model?: string;
  readonly streamed?: boolean;
  readonly tokens: number;
  readonly delayMs?: number;
  readonly firstMs?: number;
  /** Text behind the script line, to make the request large. */
  readonly paddingCharacters?: number;
}

export function scriptedChat(wish: ScriptedWish): ScriptedChat {
  const { model = "scripted", streamed = true, tokens, delayMs = 0, firstMs = 0, paddingCharacters = 0 } = wish;
  const nonce = randomBytes(6).toString("hex");
  const line = `/script tokens=${tokens} delay_ms=${delayMs} first_ms=${firstMs} nonce=${nonce}`;
  const content = paddingCharacters === 0 ? line : `${line}\n${"x".repeat(paddingCharacters)}`;
  const body = JSON.stringify({ model, stream: streamed, messages: [{ role: "user", content }] });
  return { nonce, model, streamed, tokens, body };
}

/** All that a client may ever be sent as the text of its answer. */
export function textOf({ nonce, tokens }: Pick<ScriptedChat, "nonce" | "tokens">): string {
  let text = "";
  for (let index = 0; index < tokens; index += 1) text += `${nonce}-${index} `;
  return text;
}
