import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { senseless } from "./openai-event.ts";
import type { CallPiece } from "./openai-tool-calls.ts";

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

export interface Chunk {
  readonly choices: readonly ChunkChoice[];
  readonly usage: UsageEvent | undefined;
}

/**
 * Picks the fields of one event of `/v1/chat/completions` or `/v1/completions`. Each server omits other fields. Throws
 * when a field of the answer has the wrong type; malformed usage and logprobs count as missing.
 */
export function pickChunk(value: unknown): Chunk {
  const chunk = fieldsOf(value, "chunk");
  if (chunk === undefined) throw senseless("chunk: missing");
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
  return senseless(`'${name}' has the wrong type`);
}
