import { z } from "zod";
import {
  type AnswerEvent,
  type FinishReason,
  tokenLogprobs,
  type TokenLogprobs,
} from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { SentEvent } from "../read-stream.ts";
import { answerFault } from "./openai-fault.ts";
import type { CallPiece } from "./openai-tool-calls.ts";

/** The result of reading one event. `end` means that no more events follow, and does not prove success. */
type ReadEvent =
  | { readonly kind: "nothing" }
  | { readonly kind: "end" }
  | { readonly kind: "chunk"; readonly value: unknown };

/** Finish reasons by the server's word. Every other word means that the model was done. */
const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ["length", "length"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["content_filter", "content_filter"],
]);

/** Finish reasons by which a server reports a failed answer, if it reports the failure at all. */
const failureReasons = new Set(["error", "abort"]);

/** Reads one event. Throws the fault if the event reports an error, in any of the forms that servers use. */
export function readEvent(event: SentEvent, answer: { readonly hasOutput: boolean }): ReadEvent {
  if (event.kind === "comment") return { kind: "nothing" };
  if (!event.data.startsWith("{") && event.data.trim() === "[DONE]") return { kind: "end" };
  const value = parse(event.data);
  if (event.name === "error" || typeof value === "string") throw answerFault(value, answer);
  if (isFields(value) && value["error"] !== undefined && value["error"] !== null) {
    throw answerFault(value["error"], answer);
  }
  return { kind: "chunk", value };
}

export function finishReasonOf(serverReason: string, answer: { readonly hasOutput: boolean }): FinishReason {
  if (failureReasons.has(serverReason)) throw answerFault({ type: serverReason }, answer);
  return finishReasons.get(serverReason) ?? "stop";
}

export function invalidEvent(internal: string): Fault {
  return new Fault("upstream_error", { message: "The runtime sent an invalid event.", internal });
}

/**
 * Returns the fault for an interrupted stream. llama-cpp-python's server leaves a stream as soon as another request
 * comes, from any client.
 */
export function interrupted(): Fault {
  return new Fault("upstream_error", {
    message: "The runtime left its answer for another request.",
    internal:
      "the stream ended in [DONE] without a finish_reason: the server interrupts a stream when another client asks it; " +
      "start it with --interrupt_requests false",
  });
}

export function logprobsUnsupported(): Fault {
  return new Fault("unsupported_parameter", {
    message: "The runtime of this model does not support 'logprobs'.",
    param: "logprobs",
  });
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    // Drops the parser's own error: its message quotes a part of the text, which may be a user's answer.
    throw invalidEvent(`not JSON, ${data.length} characters`);
  }
}

type Fields = Readonly<Record<string, unknown>>;
type UsageEvent = Extract<AnswerEvent, { kind: "usage" }>;

/** The fields of one choice of a chunk that an answer needs. Empty texts count as missing. */
export interface ChunkChoice {
  readonly index: number;
  readonly text: string | undefined;
  readonly reasoning: string | undefined;
  readonly calls: readonly CallPiece[];
  /** Some servers write an empty reason on every chunk. */
  readonly finishReason: string | undefined;
  readonly logprobs: unknown;
}

interface Chunk {
  readonly choices: readonly ChunkChoice[];
  readonly usage: UsageEvent | undefined;
}

/**
 * Picks the fields of one event of `/v1/chat/completions` or `/v1/completions`. Each server omits other fields. Throws
 * when a field of the answer has the wrong type; malformed usage and logprobs count as missing.
 */
export function pickChunk(value: unknown): Chunk {
  const chunk = fieldsOf(value, "chunk");
  if (chunk === undefined) throw invalidEvent("chunk: missing");
  return {
    choices: listOf(chunk["choices"], "choices").map(pickChoice),
    usage: pickUsage(chunk["usage"]),
  };
}

function pickChoice(value: unknown): ChunkChoice {
  const choice = fieldsOf(value, "choice") ?? {};
  const delta = fieldsOf(choice["delta"], "delta") ?? {};
  const thought = textOf(delta["reasoning_content"], "reasoning_content");
  return {
    index: countOf(choice["index"], "index") ?? 0,
    text: textOf(delta["content"], "content") || textOf(choice["text"], "text") || undefined,
    reasoning: thought || textOf(delta["reasoning"], "reasoning") || undefined,
    calls: listOf(delta["tool_calls"], "tool_calls").map(pickCall),
    finishReason: textOf(choice["finish_reason"], "finish_reason"),
    logprobs: choice["logprobs"],
  };
}

function pickCall(value: unknown): CallPiece {
  const call = fieldsOf(value, "tool_call") ?? {};
  const called = fieldsOf(call["function"], "function") ?? {};
  const given = called["arguments"];
  return {
    index: countOf(call["index"], "index"),
    id: textOf(call["id"], "id"),
    name: textOf(called["name"], "name"),
    arguments: typeof given === "string" ? given : JSON.stringify(fieldsOf(given, "arguments")),
  };
}

function pickUsage(value: unknown): UsageEvent | undefined {
  const usage = isFields(value) ? value : {};
  const promptTokens = validCount(usage["prompt_tokens"]);
  if (promptTokens === undefined) return undefined;
  const ofPrompt = usage["prompt_tokens_details"];
  const ofAnswer = usage["completion_tokens_details"];
  return {
    kind: "usage",
    promptTokens,
    completionTokens: validCount(usage["completion_tokens"]) ?? 0,
    cachedTokens: isFields(ofPrompt) ? validCount(ofPrompt["cached_tokens"]) : undefined,
    reasoningTokens: isFields(ofAnswer) ? validCount(ofAnswer["reasoning_tokens"]) : undefined,
  };
}

/** Servers write null for a missing field, as often as they omit it. */
function isMissing(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function fieldsOf(value: unknown, name: string): Fields | undefined {
  if (isFields(value)) return value;
  if (isMissing(value)) return undefined;
  throw wrongType(name);
}

function listOf(value: unknown, name: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (isMissing(value)) return [];
  throw wrongType(name);
}

function textOf(value: unknown, name: string): string | undefined {
  if (typeof value === "string") return value;
  if (isMissing(value)) return undefined;
  throw wrongType(name);
}

function countOf(value: unknown, name: string): number | undefined {
  if (isMissing(value)) return undefined;
  const count = validCount(value);
  if (count === undefined) throw wrongType(name);
  return count;
}

function validCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

function wrongType(name: string): Error {
  return invalidEvent(`'${name}' has the wrong type`);
}

/** The logprob of one token. Some servers omit parts of it. */
const tokenLogprob = z.object({
  token: z.string(),
  logprob: z.number(),
  bytes: z
    .array(z.int())
    .nullish()
    .transform((bytes) => bytes ?? null),
});
const listed = z
  .array(
    tokenLogprob.extend({
      top_logprobs: z
        .array(tokenLogprob)
        .nullish()
        .transform((others) => others ?? []),
    }),
  )
  .pipe(tokenLogprobs);

/** Logprobs in the form of chats. */
const inChats = z.object({ content: listed });

/** Logprobs in the form of completions: parallel lists, and the alternatives in no order. */
const sideBySide = z.object({
  tokens: z.array(z.string()).min(1),
  token_logprobs: z.array(z.number()),
  top_logprobs: z.array(z.record(z.string(), z.number()).nullable()).nullish(),
});

/**
 * Returns the logprobs of a piece in the form of chats, with at most `alternatives` alternatives for each token. Some
 * servers send the form of chats for completions.
 */
export function logprobsIn(value: unknown, alternatives: number): TokenLogprobs | undefined {
  const chat = inChats.safeParse(value);
  if (chat.success && chat.data.content.length > 0) {
    return chat.data.content.map((token) => ({ ...token, top_logprobs: token.top_logprobs.slice(0, alternatives) }));
  }
  const lists = sideBySide.safeParse(value);
  if (!lists.success) return undefined;
  const { tokens, token_logprobs: likelihoods, top_logprobs: others } = lists.data;
  return tokens.flatMap((token, at) => {
    const logprob = likelihoods[at];
    if (logprob === undefined) return [];
    return [{ token, logprob, bytes: null, top_logprobs: likeliest(others?.[at] ?? {}, alternatives) }];
  });
}

function likeliest(others: Readonly<Record<string, number>>, count: number): TokenLogprobs[number]["top_logprobs"] {
  return Object.entries(others)
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, count)
    .map(([token, logprob]) => ({ token, logprob, bytes: null }));
}
