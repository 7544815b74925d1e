import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { DataRecord } from "#shared/protocol/frame.ts";
import { chatBody, type TextToContinue } from "#shared/protocol/job-bodies.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { faultEntry } from "#shared/fault/fault.ts";
import { runJob } from "../../../services/agent/jobs/run-job.ts";
import { ollamaRuntime } from "../../../services/agent/runtimes/ollama/ollama.ts";
import type { OpenAiServerKind } from "../../../services/agent/runtimes/openai/openai-profile.ts";
import { recogniseOpenAiServer } from "../../../services/agent/runtimes/openai/recognise-openai-server.ts";
import type { Runtime } from "../../../services/agent/runtimes/runtime.ts";
import { faultBody } from "../../../services/gateway/http/answer-faults.ts";
import { eventsOf, textOn, offeredBy } from "../../harness/ask-runtime.ts";
import { ReplayServer, type Replay } from "../../harness/replay-server.ts";
import { fromRuntime, toClient } from "./short-form.ts";
import { ChatChunks } from "../../../services/gateway/apis/chat/render-chat.ts";
import { eventsIn, payloadOfRecords } from "../../harness/answer-payload.ts";

type Kind = "ollama" | Exclude<OpenAiServerKind, "openai">;

/** A runtime that says what a real one was recorded to say, and what a client has of it. */
export interface Replayed extends AsyncDisposable {
  /**
   * What a client is sent, as a stream, when the runtime answers a chat like this; a text has one event a line. Each time
   * that it has been sent something, the test is told.
   */
  streamed(odd: string | Replay, request?: object, onSent?: () => void): Promise<string>;
  /** What a client is told when the runtime refuses a chat like this. */
  refused(refusal: { readonly status: number; readonly body: string }, request?: object): Promise<object>;
  /** What the runtime's adapter says when it continues a text like this, or refuses to. */
  continued(
    odd: string | { readonly status: number; readonly body: string },
    wish?: Partial<TextToContinue>,
  ): Promise<AnswerEvent[]>;
  /** What the runtime was sent last in a chat. */
  readonly asked: unknown;
}

const hi = [{ role: "user", content: "hi" }];

/** Requests that were recorded at every runtime: with a function, and with an answer that has begun. */
export const tools = [{ type: "function", function: { name: "get_weather", parameters: { type: "object" } } }];
export const continued = { messages: [...hi, { role: "assistant", content: "Hello there" }] };

/** How likely the one token was that came, which was the likeliest as well. */
export function likely(token: string, bytes: readonly number[] | null = [...Buffer.from(token)]): object {
  const told = { token, logprob: 0, bytes };
  return { ...told, top_logprobs: [told] };
}

const ollamaHost = { platform: "linux", arch: "x64" } as const;
const able = { completion: true, vision: true, embedding: false, tools: true, thinking: true };
const id = "chatcmpl-0123456789ab";

/** What its requests of discovery are answered with, by path, is literal as well: it is what the runtime is known by. */
export async function replayed(kind: Kind, discovery: Readonly<Record<string, string>>): Promise<Replayed> {
  await using parts = new AsyncDisposableStack();
  const server = parts.use(await ReplayServer.start());
  for (const [path, body] of Object.entries(discovery)) server.answers(path, { headers: json, body });
  const runtime = await runtimeOf(kind, server.url);
  parts.defer(() => runtime.close?.());
  const [model] = await offeredBy(runtime);
  if (model === undefined) throw new Error(`${kind} offers nothing`);
  const route = { runtime, ownId: model.id, model: { ...model, capabilities: able }, lane: "its own" };
  const ended = parts.move();

  const path = kind === "ollama" ? "/api/chat" : "/v1/chat/completions";
  const end = kind === "mlx-lm" ? "closed" : "chunked";
  const stream = { "content-type": kind === "ollama" ? "application/x-ndjson" : "text/event-stream" };

  async function run(replay: Replay, request: object, onSent = () => {}) {
    server.answers(path, replay);
    const { stream_options: options, ...fields } = request as { stream_options?: { include_usage: boolean } };
    const body = Buffer.from(JSON.stringify(chatBody.parse({ messages: hi, ...fields })));
    let sent = "";
    const answer = { id, createdSeconds: 1_795_200_000, model: "m" };
    const renderer = new ChatChunks(answer, options?.include_usage ?? false);
    const write = (records: readonly DataRecord[]): undefined => {
      sent += Buffer.from(renderer.push(eventsIn(payloadOfRecords(records)))).toString();
      if (records.length > 0) onSent();
    };
    const head = { id: "0123456789ab", kind: "chat", model: "m", remainingMs: 10_000, bodyBytes: body.length } as const;
    const signal = AbortSignal.timeout(10_000);
    const begun = { width: 1, state: "prefill", silence: undefined, isHeldBack: false, progressAtMs: 0 } as const;
    const job = { ...begun, head, body, signal, firstTokenAtMs: undefined, answering: () => {}, outbox: { write } };
    const outcome = await runJob(job, route, clock);
    return { sent, outcome };
  }

  return {
    async streamed(odd, request = {}, onSent = () => {}) {
      const replay: Replay = typeof odd === "string" ? { body: fromRuntime(odd) } : odd;
      const { sent, outcome } = await run({ headers: stream, end, ...replay }, request, onSent);
      // As the gateway ends a stream, whose own tests hold it to that.
      const last = outcome.outcome === "end" ? "[DONE]" : JSON.stringify(faultBody(outcome.fault));
      return toClient(`${sent}data: ${last}\n\n`);
    },
    async refused({ status, body }, request = {}) {
      const { sent, outcome } = await run({ status, headers: json, body }, request);
      if (outcome.outcome === "end" || sent !== "") throw new Error(`the chat was not refused: ${sent}`);
      return { status: faultEntry(outcome.fault.code).status, ...faultBody(outcome.fault) };
    },
    continued(odd, wish = {}) {
      const replay: Replay =
        typeof odd === "string" ? { headers: stream, end, body: fromRuntime(odd) } : { headers: json, ...odd };
      server.answers(kind === "ollama" ? "/api/generate" : "/v1/completions", replay);
      return eventsOf(textOn(runtime, { model: model.id, ...wish }));
    },
    get asked() {
      return server.requestsTo(path).at(-1)?.body;
    },
    [Symbol.asyncDispose]: () => ended.disposeAsync(),
  };
}

const json = { "content-type": "application/json; charset=utf-8" };

async function runtimeOf(kind: Kind, url: string): Promise<Runtime> {
  if (kind === "ollama") return ollamaRuntime({ url, host: ollamaHost });
  const signal = AbortSignal.timeout(10_000);
  const options = { wanted: kind, hubFolder: "/nowhere", platform: "linux", signal };
  const runtime = await recogniseOpenAiServer({ url, clock }, options);
  if (runtime === undefined) throw new Error(`what answers at ${url} is not ${kind}`);
  return runtime;
}
