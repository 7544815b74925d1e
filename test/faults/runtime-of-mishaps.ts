import { setTimeout as pause } from "node:timers/promises";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { FakeVllm } from "../harness/fake-vllm.ts";

/** What is wrong with a runtime; each of them before its first token or, with `after`, when some have been said. */
export type Mishap =
  | "well"
  | "silent"
  | "slow"
  | "500"
  | "out of memory"
  | "busy"
  | "HTML"
  | "no JSON"
  | "wrong types"
  | "bytes"
  | "closes"
  | "cuts"
  | "dies"
  | "an error as vLLM tells it"
  | "an error as OpenAI tells it"
  | "somebody else";

export interface RuntimeWish {
  readonly mishap: Mishap;
  /** So many tokens are said before it. */
  readonly after?: number;
}

/** What a runtime would say of itself, and no client is to read. */
export const unsaid = "CUDA error at /root/secret.py";

const sayingMs = 50;

const garbage: Readonly<Partial<Record<Mishap, string | Uint8Array>>> = {
  HTML: "<html><body>502 Bad Gateway</body></html>\n\n",
  "no JSON": `data: {"choices": [NaN, ${unsaid}\n\n`,
  "wrong types": 'data: {"choices":"many","id":7}\n\n',
  bytes: Buffer.from("ff00fe81c3280a0a64617461", "hex"),
};

/** A model server that says what a script line asks for, token by token, until its mishap. Its model is `scripted`. */
export async function startRuntime(wish: RuntimeWish, port?: number): Promise<FakeVllm> {
  const runtime = await FakeVllm.start({ models: [{ id: "scripted" }], ...(port === undefined ? {} : { port }) });
  runtime.onChat = (chat) => (wish.mishap === "dies" ? runtime.stop() : answer(chat, wish));
  return runtime;
}

async function answer(chat: FakeOpenAiChat, { mishap, after = 0 }: RuntimeWish): Promise<void> {
  const { tokens, nonce, delayMs, firstMs } = scriptIn(JSON.stringify(chat.request.body["messages"]));
  if (firstMs > 0) await pause(firstMs);
  const said = mishap === "well" || mishap === "slow" || mishap === "somebody else" ? tokens : Math.min(after, tokens);
  for (let index = 0; index < said; index += 1) {
    if (chat.request.closedEarly) return;
    if (mishap === "somebody else") chat.event(foreign(`${nonce}-${index} `));
    else chat.say(`${nonce}-${index} `);
    if (delayMs > 0) await pause(delayMs);
  }
  // What was said goes out before it: a socket that is cut drops what it still holds.
  if (said > 0) await pause(sayingMs);
  befall(chat, mishap, tokens);
}

function befall(chat: FakeOpenAiChat, mishap: Mishap, tokens: number): void {
  switch (mishap) {
    case "well":
    case "slow":
    case "somebody else":
      chat.done({ usage: { prompt_tokens: 5, completion_tokens: tokens, total_tokens: tokens + 5 } });
      return;
    case "silent":
      return;
    case "500":
      chat.refuse(500, unsaid);
      return;
    case "out of memory":
      chat.refuse(500, `CUDA out of memory. ${unsaid}`);
      return;
    case "busy":
      chat.refuse(503, "busy");
      return;
    case "closes":
      chat.end();
      return;
    case "cuts":
      chat.cut();
      return;
    case "an error as vLLM tells it":
      chat.event({ object: "error", message: unsaid, type: "InternalServerError", param: null, code: 500 });
      chat.end();
      return;
    case "an error as OpenAI tells it":
      chat.event({ error: { message: unsaid, type: "server_error", param: null, code: null } });
      chat.end();
      return;
    default:
      chat.raw(garbage[mishap] ?? "");
      chat.end();
  }
}

/** A chunk that claims another id and another model, and has fields that nobody knows. */
function foreign(content: string): object {
  const choice = { index: 0, delta: { role: "assistant", content }, finish_reason: null, stop_reason: null };
  const about = { id: "not-ours", object: "chat.completion.chunk", created: 1, model: "/root/another" };
  return { ...about, choices: [choice], prompt_token_ids: [1], "x-canary": unsaid };
}

function scriptIn(messages: string): { tokens: number; nonce: string; delayMs: number; firstMs: number } {
  const word = (name: string): string | undefined => new RegExp(`\\b${name}=([\\w-]+)`).exec(messages)?.[1];
  return {
    tokens: Number(word("tokens") ?? 10),
    nonce: word("nonce") ?? "token",
    delayMs: Number(word("delay_ms") ?? 0),
    firstMs: Number(word("first_ms") ?? 0),
  };
}
