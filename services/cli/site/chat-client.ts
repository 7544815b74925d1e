import { EventSourceParserStream } from "eventsource-parser/stream";
import { z } from "zod";
import type { KeyToken } from "#shared/keys/key-token.ts";
import { errorLine, type ErrorBody, type Model, model } from "#shared/protocol/model.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { statusOf, whyUnreachable } from "./find-gateway.ts";

export interface SentMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

const text = z.string().nullish();
const chunk = z.object({
  choices: z.array(z.object({ delta: z.object({ content: text, reasoning_content: text }), finish_reason: text })),
});
type AnswerPiece = z.output<typeof chunk>["choices"][number];

/** Maximum size of one event of a stream. */
const eventBytesMax = 16 * 1024 * 1024;

/** A site for a command: its base URL, an API key, and the option that names another base URL. */
export interface ChatSite {
  readonly baseUrl: string;
  readonly key: KeyToken;
  readonly option: string;
}

const modelList = z.object({ data: z.array(model) });

/** Returns the models that a key may call. Throws a StartFailure for every error. */
export async function listSiteModels(site: ChatSite, signal?: AbortSignal): Promise<readonly Model[]> {
  try {
    const response = await ask(site, "/models", { signal: signal ?? null });
    const list = modelList.safeParse(await response.json().catch(() => undefined));
    if (list.success) return list.data.data;
    throw noGateway(site.baseUrl);
  } catch (error) {
    throw error instanceof StartFailure ? error : unreachable(site, error);
  }
}

/**
 * Streams a chat completion from a gateway. Aborting the signal stops the work on the machine. Throws a StartFailure for
 * every other error.
 */
export async function* streamChat(
  site: ChatSite,
  chat: { readonly model: string; readonly messages: readonly SentMessage[]; readonly signal: AbortSignal },
): AsyncGenerator<AnswerPiece> {
  const { baseUrl } = site;
  const { signal, ...request } = chat;
  const events = new EventSourceParserStream({
    maxBufferSize: eventBytesMax,
    onError() {
      throw noGateway(baseUrl);
    },
  });
  try {
    const body = JSON.stringify({ ...request, stream: true });
    const response = await ask(site, "/chat/completions", { method: "POST", body, signal });
    for await (const { data } of response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(events) ?? []) {
      if (data === "[DONE]") return;
      yield* piecesIn(data, baseUrl);
    }
  } catch (error) {
    throw error instanceof StartFailure ? error : unreachable(site, error);
  }
  throw unreachable(site, new Error("the answer broke off"));
}

/** Sends a request and returns its answer, unless that is a refusal. */
async function ask({ baseUrl, key }: ChatSite, path: string, request: RequestInit): Promise<Response> {
  const headers = { authorization: `Bearer ${key.reveal()}`, "content-type": "application/json" };
  const response = await fetch(`${baseUrl}${path}`, { ...request, headers, redirect: "error" });
  if (response.ok) return response;
  const refusal = errorLine.safeParse(await response.json().catch(() => undefined));
  throw refusal.success ? failure(refusal.data.error) : noGateway(baseUrl);
}

function piecesIn(event: string, baseUrl: string): readonly AnswerPiece[] {
  const read = z.union([errorLine, chunk]).safeParse(jsonIn(event));
  if (!read.success) throw noGateway(baseUrl);
  if ("error" in read.data) throw failure(read.data.error);
  return read.data.choices;
}

function failure({ message, code }: ErrorBody): StartFailure {
  const status = statusOf(code);
  const exitCode = status === 401 ? exitCodes.config : status >= 500 ? exitCodes.unavailable : exitCodes.failed;
  return new StartFailure(exitCode, onOneLine(`${message} (${code ?? "no code"})`));
}

function unreachable({ baseUrl, option }: ChatSite, error: unknown): StartFailure {
  const why = whyUnreachable(baseUrl, error instanceof Error && error.cause instanceof Error ? error.cause : error);
  return new StartFailure(
    exitCodes.unavailable,
    `${why}: start a gateway or \`trunkline up\`, or name another base URL with ${option} or TRUNKLINE_BASE_URL.`,
    { cause: error },
  );
}

function noGateway(baseUrl: string): StartFailure {
  return new StartFailure(exitCodes.unavailable, `What answers at ${baseUrl} is no gateway of Trunkline.`);
}
