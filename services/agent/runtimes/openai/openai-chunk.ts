import { z } from "zod";
import type { AnswerEvent, TokenLogprobs } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { runtimeLogprobs } from "../adjust-answer.ts";
import type { CallPiece } from "./openai-tool-calls.ts";

export function invalidEvent(internal: string): Fault {
  return new Fault("upstream_error", { message: "The runtime sent an invalid event.", internal });
}

export function parseEvent(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    // Drops the parser's own error: its message quotes a part of the text, which may be a user's answer.
    throw invalidEvent(`not JSON, ${data.length} characters`);
  }
}

type Fields = Readonly<Record<string, unknown>>;
type UsageEvent = Extract<AnswerEvent, { kind: "usage" }>;

/**
 * Picks the fields of one event of `/v1/chat/completions` or `/v1/completions`. Each server omits other fields. Throws
 * when a field of the answer has the wrong type; malformed usage and logprobs count as missing.
 */
export function pickChunk(value: unknown): { choices: readonly ChunkChoice[]; usage: UsageEvent | undefined } {
  if (!isFields(value)) throw invalidEvent("a chunk that is no object");
  return { choices: (pick(value, "choices", isList) ?? []).map(pickChoice), usage: pickUsage(value["usage"]) };
}

/** The fields of one choice of a chunk that an answer needs. Empty texts count as missing. */
export type ChunkChoice = ReturnType<typeof pickChoice>;

function pickChoice(value: unknown) {
  if (!isFields(value)) throw invalidEvent("a choice that is no object");
  const delta = pick(value, "delta", isFields) ?? {};
  return {
    index: pick(value, "index", isCount) ?? 0,
    text: pick(delta, "content", isText) || pick(value, "text", isText) || undefined,
    reasoning: pick(delta, "reasoning_content", isText) || pick(delta, "reasoning", isText) || undefined,
    calls: (pick(delta, "tool_calls", isList) ?? []).map(pickCall),
    /** Some servers write an empty reason on every chunk. */
    finishReason: pick(value, "finish_reason", isText),
    /** The stop string that ended the answer, which vLLM tells. */
    stop: isText(value["stop_reason"]) ? value["stop_reason"] : undefined,
    logprobs: value["logprobs"],
  };
}

function pickCall(value: unknown): CallPiece {
  if (!isFields(value)) throw invalidEvent("a tool call that is no object");
  const called = pick(value, "function", isFields) ?? {};
  const given = called["arguments"];
  return {
    index: pick(value, "index", isCount),
    id: pick(value, "id", isText),
    name: pick(called, "name", isText),
    arguments: isText(given) ? given : JSON.stringify(pick(called, "arguments", isFields)),
  };
}

function pickUsage(value: unknown): UsageEvent | undefined {
  if (!isFields(value) || !isCount(value["prompt_tokens"])) return undefined;
  const count = (fields: unknown, name: string): number | undefined => {
    const given = isFields(fields) ? fields[name] : undefined;
    return isCount(given) ? given : undefined;
  };
  return {
    kind: "usage",
    promptTokens: value["prompt_tokens"],
    completionTokens: count(value, "completion_tokens") ?? 0,
    cachedTokens: count(value["prompt_tokens_details"], "cached_tokens"),
    reasoningTokens: count(value["completion_tokens_details"], "reasoning_tokens"),
  };
}

/** Returns a field; undefined when it is missing or null, which servers write for a missing field. */
function pick<Value>(fields: Fields, name: string, is: (value: unknown) => value is Value): Value | undefined {
  const value = fields[name];
  if (value === null || value === undefined) return undefined;
  if (is(value)) return value;
  throw invalidEvent(`'${name}' has the wrong type`);
}

const isText = (value: unknown): value is string => typeof value === "string";
const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Logprobs in the form of chats. */
const inChats = z.object({ content: runtimeLogprobs });

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
