import { request as openRequest, type ClientRequest, type IncomingMessage } from "node:http";
import { z } from "zod";
import type { Endpoint } from "../harness/endpoint.ts";

/** What a request asks of the scripted runtime, whose whole answer follows from it. */
export interface Script {
  readonly tokens: number;
  readonly delayMs?: number;
  readonly firstMs?: number;
}

/**
 * How a request ended, as its client sees it: with the whole answer; with a status and a code; with an error event inside
 * a stream, and its code; with a connection that broke; or left by the client itself. `truncated` is what must never be:
 * a stream that was closed as if all were well, without an end. `garbled` is as bad: an event that cannot be read.
 */
export type Outcome =
  | "answered"
  | "broken"
  | "left"
  | "truncated"
  | "garbled"
  | `${number} ${string}`
  | `event ${string}`;

const told = z.object({ error: z.object({ code: z.string().nullable(), message: z.string() }) });
const chunk = z.looseObject({
  choices: z.array(z.looseObject({ delta: z.looseObject({ content: z.string().nullish() }) })),
});
const whole = z.looseObject({
  choices: z.tuple([z.looseObject({ message: z.looseObject({ content: z.string().nullable() }) })]),
});

/** The text that the scripted runtime gives to a script with this nonce. */
export function scriptedText(nonce: string, tokens: number): string {
  return Array.from({ length: tokens }, (_, index) => `${nonce}-${index} `).join("");
}

interface ScriptedWish {
  readonly nonce: string;
  readonly model: string;
  readonly script: Script;
  readonly stream: boolean;
  /** Text behind the script line, to make the body as large as a test needs it. */
  readonly padding?: number;
  /** Says what it is about to send and waits to be asked for it. */
  readonly withholdsBody?: boolean;
}

/**
 * One request of a client that knows what the answer must be, on a connection of its own. It notes what comes and when,
 * and can behave badly: withhold its body, stop reading, leave in several ways.
 */
export class ScriptedRequest {
  readonly wish: ScriptedWish;
  readonly sentAtMs = performance.now();
  /** Resolves, and never rejects, when the request has come to its end. */
  readonly over: Promise<Outcome>;
  outcome: Outcome | undefined;
  status: number | undefined;
  headers: IncomingMessage["headers"] = {};
  text = "";
  /** What stands around the text: every id, model and field that came. */
  readonly ids = new Set<unknown>();
  readonly models = new Set<unknown>();
  readonly fields = new Set<string>();
  /** When the gateway asked for the body that is withheld. */
  askedForBodyAtMs: number | undefined;
  firstTextAtMs: number | undefined;
  lastTextAtMs: number | undefined;
  endedAtMs: number | undefined;
  /** The longest time between two pieces of text. */
  longestPauseMs = 0;
  readonly #request: ClientRequest;
  readonly #body: string;
  #response: IncomingMessage | undefined;
  #raw = "";
  #rest = "";
  #done = false;
  #error: string | undefined;
  #left = false;
  #isGarbled = false;

  constructor(endpoint: Endpoint, wish: ScriptedWish) {
    this.wish = wish;
    this.#body = bodyOf(wish);
    this.#request = openRequest(`${endpoint.baseUrl}/chat/completions`, {
      method: "POST",
      agent: false,
      headers: {
        authorization: `Bearer ${endpoint.key}`,
        "content-type": "application/json",
        "content-length": Buffer.byteLength(this.#body),
        ...(wish.withholdsBody === true ? { expect: "100-continue" } : {}),
      },
    });
    this.over = new Promise((resolve) => {
      const settle = (outcome: Outcome): void => {
        if (this.outcome !== undefined) return;
        this.outcome = outcome;
        this.endedAtMs = performance.now();
        resolve(outcome);
      };
      this.#request.on("continue", () => (this.askedForBodyAtMs = performance.now()));
      this.#request.on("error", () => settle(this.#broken()));
      this.#request.on("response", (response) => this.#follow(response, settle));
    });
    if (wish.withholdsBody === true) this.#request.flushHeaders();
    else this.#request.end(this.#body);
  }

  /** How many tokens of the text have come. */
  get tokens(): number {
    return this.text === "" ? 0 : this.text.trimEnd().split(" ").length;
  }

  /** From its sending to its end. */
  get tookMs(): number {
    return (this.endedAtMs ?? Number.NaN) - this.sentAtMs;
  }

  sendBody(): void {
    this.#request.end(this.#body);
  }

  /** Its connection stays open and nothing is read from it any more. */
  stopReading(): void {
    this.#response?.pause();
    this.#request.socket?.pause();
  }

  readOn(): void {
    this.#request.socket?.resume();
    this.#response?.resume();
  }

  /** Ends its connection: in good order, by a reset, or its own half only. */
  leave(how: "fin" | "reset" | "half"): void {
    this.#left = true;
    const { socket } = this.#request;
    if (how === "half") socket?.end();
    else if (how === "reset" && socket !== null) socket.resetAndDestroy();
    else this.#request.destroy();
  }

  #follow(response: IncomingMessage, settle: (outcome: Outcome) => void): void {
    this.#response = response;
    this.status = response.statusCode;
    this.headers = response.headers;
    response.setEncoding("utf8");
    response.on("data", (piece: string) => this.#take(piece));
    response.on("error", () => settle(this.#broken()));
    response.on("close", () => settle(response.complete ? this.#closed() : this.#broken()));
  }

  #take(piece: string): void {
    if (!this.wish.stream || this.status !== 200) {
      this.#raw += piece;
      return;
    }
    const parts = (this.#rest + piece).split("\n\n");
    this.#rest = parts.pop() ?? "";
    for (const part of parts) this.#event(part);
  }

  #event(part: string): void {
    if (!part.startsWith("data: ")) return;
    const data = part.slice("data: ".length);
    if (data === "[DONE]") {
      this.#done = true;
      return;
    }
    const value = jsonIn(data);
    if (value === undefined) this.#isGarbled = true;
    if (value === undefined || this.#isGarbled) return;
    const error = told.safeParse(value);
    if (error.success) {
      this.#error = error.data.error.code ?? "null";
      return;
    }
    const read = chunk.parse(value);
    this.#note(read);
    const text = read.choices.map(({ delta }) => delta.content ?? "").join("");
    if (text !== "") this.#addText(text);
  }

  #addText(text: string): void {
    const nowMs = performance.now();
    const sinceMs = this.lastTextAtMs ?? nowMs;
    this.longestPauseMs = Math.max(this.longestPauseMs, nowMs - sinceMs);
    this.firstTextAtMs ??= nowMs;
    this.lastTextAtMs = nowMs;
    this.text += text;
  }

  #note(read: Readonly<Record<string, unknown>>): void {
    this.ids.add(read["id"]);
    this.models.add(read["model"]);
    for (const field of Object.keys(read)) this.fields.add(field);
  }

  #broken(): Outcome {
    return this.#left ? "left" : "broken";
  }

  #closed(): Outcome {
    if (this.status === undefined) return this.#broken();
    if (this.status !== 200) {
      const { code } = told.parse(JSON.parse(this.#raw)).error;
      return `${this.status} ${code ?? "null"}`;
    }
    if (!this.wish.stream) {
      const read = whole.parse(JSON.parse(this.#raw));
      this.#note(read);
      this.text = read.choices[0].message.content ?? "";
      return "answered";
    }
    if (this.#isGarbled) return "garbled";
    // An end after an error event, or an error event after an end, is as bad as no end at all.
    if (this.#error !== undefined) return this.#done ? "truncated" : `event ${this.#error}`;
    return this.#done ? "answered" : "truncated";
  }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function bodyOf({ nonce, model, script, stream, padding = 0 }: ScriptedWish): string {
  const words: Readonly<Record<string, number | undefined>> = {
    tokens: script.tokens,
    delay_ms: script.delayMs,
    first_ms: script.firstMs,
  };
  const given = Object.entries(words).flatMap(([word, value]) => (value === undefined ? [] : [`${word}=${value}`]));
  const line = ["/script", ...given, `nonce=${nonce}`].join(" ");
  const content = padding === 0 ? line : `${line}\n${"word ".repeat(Math.ceil(padding / 5)).slice(0, padding)}`;
  return JSON.stringify({ model, stream, messages: [{ role: "user", content }] });
}
