import { request, type Agent, type IncomingMessage } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { z } from "zod";
import { judgeAnswer, type Outcome, type Received } from "./judge-answer.ts";
import type { ScriptedChat } from "./scripted-chat.ts";

/** One request and how it ended, with its times from the moment it was sent. */
export interface Asked {
  readonly chat: ScriptedChat;
  readonly outcome: Outcome;
  readonly received: Received;
  readonly requestId: string | undefined;
  /** When the first event came, or the body of a whole answer. */
  readonly firstMs: number;
  readonly totalMs: number;
  /** Why the connection broke, if it did. */
  readonly why: string | undefined;
  /** The id of the answer, which is another one when the same request is answered anew. */
  readonly answerId: string | undefined;
  /** The id of the last event, by which a client resumes a stream. */
  readonly lastEventId: string | undefined;
  /** True if the gateway reports that the answer was made for an earlier request. */
  readonly replayed: boolean;
  /** True if another machine went on with the answer. */
  readonly continued: boolean;
}

/** Where a request goes, and what is sent beside its chat. */
export interface AskOptions {
  readonly baseUrl: string;
  readonly key: string;
  readonly agent: Agent;
  readonly onBegun?: () => void;
  readonly signal?: AbortSignal;
  /** The client gives up a connection on which nothing came for this long. */
  readonly silentMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The text of the answer that earlier connections brought: a resumed stream is judged together with it. */
  readonly textBefore?: string;
}

/** A way to get the answer to a chat. Never rejects. */
export type Ask = (chat: ScriptedChat, options: AskOptions) => Promise<Asked>;

interface Event {
  readonly id?: string;
  readonly choices?: readonly { readonly delta?: { readonly content?: string | null } }[];
  readonly error?: { readonly code: string | null; readonly message?: string };
}
const whole = z.looseObject({
  id: z.string().optional(),
  choices: z
    .array(z.looseObject({ message: z.looseObject({ content: z.string().nullish() }), finish_reason: z.string() }))
    .optional(),
  error: z.looseObject({ code: z.string().nullable(), message: z.string().optional() }).optional(),
});

/** Asks without any SDK, so that one core can hold thousands of streams and see every byte. Never rejects. */
export function askOverHttp(chat: ScriptedChat, options: AskOptions): Promise<Asked> {
  const { baseUrl, key, agent, onBegun, signal, silentMs, headers: sent = {}, textBefore = "" } = options;
  const sentAtMs = performance.now();
  return new Promise((resolve) => {
    const reading = new Reading(textBefore);
    let answer: IncomingMessage | undefined;
    let firstAtMs: number | undefined;
    let settled = false;
    const settle = (why: string | undefined): void => {
      if (settled) return;
      settled = true;
      const closed = answer?.complete === true;
      if (closed && !reading.streamed) reading.readWhole();
      const { text, code, message, success, answerId, lastEventId, continued } = reading;
      const { statusCode: status, headers = {} } = answer ?? {};
      const received = { status, text, code, message, success, closed, retryAfter: headers["retry-after"] };
      const endedAtMs = performance.now();
      const requestId = headers["x-request-id"];
      resolve({
        chat,
        received,
        outcome: judgeAnswer(chat, received),
        requestId: Array.isArray(requestId) ? requestId[0] : requestId,
        firstMs: (firstAtMs ?? endedAtMs) - sentAtMs,
        totalMs: endedAtMs - sentAtMs,
        why,
        answerId,
        lastEventId,
        replayed: headers["idempotent-replayed"] === "true",
        continued,
      });
    };
    const asking = request(
      `${baseUrl}/chat/completions`,
      {
        method: "POST",
        agent,
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
          "content-length": Buffer.byteLength(chat.body),
          ...sent,
        },
        ...(signal && { signal }),
        ...(silentMs !== undefined && { timeout: silentMs }),
      },
      (response) => {
        answer = response;
        reading.streamed = response.headers["content-type"]?.startsWith("text/event-stream") === true;
        response.on("data", (bytes: Buffer) => {
          reading.push(bytes);
          if (!reading.begun || firstAtMs !== undefined) return;
          firstAtMs = performance.now();
          onBegun?.();
        });
        response.on("error", (error) => settle(error.message));
        response.on("close", () => settle(response.complete ? undefined : "the connection broke"));
      },
    );
    asking.on("timeout", () => asking.destroy(new Error("the connection was silent")));
    asking.on("error", (error) => settle(error.message));
    asking.end(chat.body);
  });
}

/** An answer as it comes: its events if it is streamed, else a whole body. */
class Reading {
  streamed = false;
  text: string;
  answerId: string | undefined;
  lastEventId: string | undefined;
  continued = false;
  code: string | null | undefined;
  message: string | undefined;
  success = false;
  /** Whether anything came that is more than a comment. */
  begun = false;
  #rest = "";
  readonly #decoder = new StringDecoder("utf8");

  constructor(textBefore: string) {
    this.text = textBefore;
  }

  push(bytes: Buffer): void {
    this.#rest += this.#decoder.write(bytes);
    if (!this.streamed) {
      this.begun = true;
      return;
    }
    let from = 0;
    for (let end = this.#rest.indexOf("\n\n"); end >= 0; end = this.#rest.indexOf("\n\n", from)) {
      this.#take(this.#rest.slice(from, end));
      from = end + 2;
    }
    this.#rest = this.#rest.slice(from);
  }

  readWhole(): void {
    try {
      const { id, choices, error } = whole.parse(JSON.parse(this.#rest));
      const [choice] = choices ?? [];
      this.answerId = id;
      if (error !== undefined) ({ code: this.code, message: this.message } = error);
      if (choice === undefined) return;
      this.text = choice.message.content ?? "";
      this.success = true;
    } catch {
      // Neither an answer nor an error: it stays without either, which is judged.
    }
  }

  #take(block: string): void {
    let event = block;
    if (block.startsWith("id: ")) {
      const end = block.indexOf("\n");
      this.lastEventId = block.slice("id: ".length, end);
      event = block.slice(end + 1);
    } else if (block.startsWith(": continued on ")) this.continued = true;
    if (!event.startsWith("data: ")) return;
    this.begun = true;
    if (event === "data: [DONE]") {
      this.success = true;
      return;
    }
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- millions of these are read
      const { id, choices, error } = JSON.parse(event.slice("data: ".length)) as Event;
      this.answerId ??= id;
      if (error !== undefined) ({ code: this.code, message: this.message } = error);
      this.text += choices?.[0]?.delta?.content ?? "";
    } catch {
      this.text += event;
    }
  }
}
