import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { sendJson, sendText } from "../../harness/fake-openai-server.ts";
import { SeededRandom } from "../../harness/seeded-random.ts";
import { firstModel as model } from "../variants/variant.ts";
import type { EngineSpec, Progress } from "./engine.ts";
import { chatRequest, engineRequest } from "./engine-prompt.ts";
import { LiveEngine } from "./live-engine.ts";
import { charactersPerToken } from "./prefix-cache.ts";
import { type Choose, chooserOf, type Reference, references } from "./references.ts";

/**
 * The process of the simulated engines: each speaks as vLLM at a port of its own. The first port is the bench's. It reports
 * counts and serves the reference routers at `/<name>/v1`. The ports are printed once all listen.
 */
const { seed, specs } = JSON.parse(process.argv[2] ?? "") as {
  readonly seed: number;
  readonly specs: readonly EngineSpec[];
};

/** Tokens between two chunks of a stream, which spares CPU time of all that pass them on. */
const chunkTokens = 8;

const engines = specs.map((spec) => new LiveEngine(spec));
/** The engines among which the reference routers choose. */
let members: readonly number[] = specs.map((_, place) => place);
const names = Object.keys(references) as Reference[];
const choosers = new Map<string, Choose>(names.map((name) => [name, chooserOf(name, new SeededRandom(seed))]));
let lastId = 0;

async function takeBench(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [, name = "", ...rest] = (request.url ?? "").split("/");
  switch (`${request.method} /${name}`) {
    case "POST /members":
      members = z.array(z.number()).parse(JSON.parse(await textOf(request)));
      return sendJson(response, 200, {});
    case "GET /counts":
      return sendJson(
        response,
        200,
        engines.map(({ promptTokens, cachedTokens, begun, firstMs }) => ({
          promptTokens,
          cachedTokens,
          begun,
          firstMs,
        })),
      );
    default:
      return rest.join("/") === "v1/chat/completions"
        ? answer(request, response, choosers.get(name))
        : notFound(response);
  }
}

async function takeAsVllm(place: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
  switch (`${request.method} ${request.url?.replace(/\?.*/, "")}`) {
    case "GET /health":
      return sendText(response, 200, "");
    case "GET /version":
      return sendJson(response, 200, { version: "0.32.0" });
    case "GET /metrics":
      return sendText(response, 200, metricsOf(place));
    case "GET /v1/models":
      return sendJson(response, 200, {
        object: "list",
        data: [{ id: model, object: "model", created: 1, owned_by: "vllm", root: model, max_model_len: 65_536 }],
      });
    case "POST /v1/chat/completions":
      return answer(request, response, () => engines[place]?.engine);
    default:
      return notFound(response);
  }
}

async function answer(incoming: IncomingMessage, response: ServerResponse, choose: Choose | undefined): Promise<void> {
  const chat = chatRequest.parse(JSON.parse(await textOf(incoming)));
  const { request, answer: text } = engineRequest((lastId += 1), chat);
  const present = engines.filter((_, place) => members.includes(place));
  const chosen = choose?.(
    request,
    present.map(({ engine }) => engine),
  );
  const live = engines.find(({ engine }) => engine === chosen);
  if (live === undefined) return notFound(response);
  response.once("close", () => live.cancel(request.id));
  const head = { id: `chatcmpl-${request.id}`, created: 1, model };
  const send = (value: object): void => void response.write(`data: ${JSON.stringify(value)}\n\n`);
  const chunk = (delta: object, finishReason: string | null): void =>
    send({
      ...head,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
    });
  let sentTokens = 0;
  const stream = (progress: Progress, isLast: boolean): void => {
    const { tokens } = progress;
    if (sentTokens === 0) {
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
      chunk({ role: "assistant", content: "" }, null);
    }
    chunk(
      { content: text.slice(sentTokens * charactersPerToken, tokens * charactersPerToken) },
      isLast ? "stop" : null,
    );
    sentTokens = tokens;
    if (!isLast) return;
    send({ ...head, object: "chat.completion.chunk", choices: [], usage: usageOf(progress) });
    response.end("data: [DONE]\n\n");
  };
  live.submit(request, (progress) => {
    const isLast = progress.tokens >= request.answerTokens;
    if (chat.stream) {
      if (isLast || progress.tokens === 1 || progress.tokens % chunkTokens === 0) stream(progress, isLast);
    } else if (isLast) {
      const choices = [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }];
      sendJson(response, 200, { ...head, object: "chat.completion", choices, usage: usageOf(progress) });
    }
  });
}

function usageOf({ request: { promptTokens }, tokens, cachedTokens }: Progress): object {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: tokens,
    total_tokens: promptTokens + tokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}

/** Running requests take nothing from the cache, so there is no use of it to report. */
function metricsOf(place: number): string {
  const engine = engines[place]?.engine;
  const labels = `{engine="0",model_name="${model}"}`;
  const rows = [
    ["vllm:num_requests_running", engine?.running.length ?? 0],
    ["vllm:num_requests_waiting", engine?.waiting.length ?? 0],
  ] as const;
  return rows.map(([name, value]) => `# TYPE ${name} gauge\n${name}${labels} ${value.toFixed(3)}\n`).join("");
}

function notFound(response: ServerResponse): void {
  sendJson(response, 404, { detail: "Not Found" });
}

async function textOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = await request.toArray();
  return Buffer.concat(pieces).toString();
}

/** Listens on a free port and returns it. */
async function listen(take: (request: IncomingMessage, response: ServerResponse) => Promise<void>): Promise<number> {
  const server = createServer((request, response) => {
    take(request, response).catch((error: unknown) => {
      if (!response.headersSent) sendJson(response, 400, { error: { message: String(error), code: 400 } });
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

const asVllm = specs.map((_, place) => listen((request, response) => takeAsVllm(place, request, response)));
console.log(JSON.stringify(await Promise.all([listen(takeBench), ...asVllm])));
