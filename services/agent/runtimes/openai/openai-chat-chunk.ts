import { z } from "zod";
import { misfitOf } from "#shared/fault/fault.ts";
import { senseless } from "./openai-event.ts";
import { toldUsage } from "./openai-usage.ts";

const delta = z.object({
  content: z.string().nullish(),
  reasoning: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(
      z.object({
        index: z.int().nonnegative().nullish(),
        id: z.string().nullish(),
        function: z
          .object({
            name: z.string().nullish(),
            arguments: z.union([z.string(), z.record(z.string(), z.unknown())]).nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
});

const choice = z.object({
  index: z.int().nonnegative().nullish(),
  delta: delta.nullish(),
  finish_reason: z.string().nullish(),
  logprobs: z
    .object({ content: z.array(z.unknown()).nullish() })
    .nullish()
    .catch(undefined),
});
export type ChunkChoice = z.infer<typeof choice>;

/** One event of an answer. Each server omits other fields. Malformed extra fields count as missing. */
const chatChunk = z.object({
  choices: z.array(choice).nullish(),
  usage: toldUsage.nullish().catch(undefined),
  prompt_progress: z.unknown().optional(),
});
type ChatChunk = z.infer<typeof chatChunk>;

/** Reads the value of an event. Throws a fault if the value is invalid. */
export function readChatChunk(value: unknown): ChatChunk {
  return isPlainChunk(value) ? value : readChunkBySchema(value);
}

/** Reads the value by the schema alone, for a value that is not a plain chunk. */
export function readChunkBySchema(value: unknown): ChatChunk {
  const parsed = chatChunk.safeParse(value);
  if (!parsed.success) throw senseless(misfitOf(parsed.error));
  return parsed.data;
}

/**
 * True if this is a plain chunk, as nearly all are: one choice with a piece of text or nothing else, or no choice and
 * the usage. This check costs a tenth of the schema's time. The schema reads all other chunks, and would return a plain
 * chunk unchanged.
 */
export function isPlainChunk(value: unknown): value is ChatChunk {
  if (!isRecord(value)) return false;
  const { choices, usage = null } = value;
  if (!Array.isArray(choices) || choices.length > 1) return false;
  if (usage !== null && !isPlainUsage(usage)) return false;
  if (choices.length === 0) return true;
  const told: unknown = choices[0];
  if (!isRecord(told)) return false;
  const { index, delta: piece, finish_reason: reason, logprobs } = told;
  if (index !== 0 || (logprobs ?? null) !== null || !isRecord(piece) || !isTextOrNothing(reason)) return false;
  const { content, reasoning, reasoning_content: thought, tool_calls: calls } = piece;
  return isTextOrNothing(content) && isTextOrNothing(reasoning) && isTextOrNothing(thought) && (calls ?? null) === null;
}

/** True for usage without details: servers report details in more than one form. */
function isPlainUsage(usage: unknown): boolean {
  if (!isRecord(usage)) return false;
  const { prompt_tokens: prompt, completion_tokens: completion } = usage;
  const { prompt_tokens_details: ofPrompt, completion_tokens_details: ofCompletion } = usage;
  return isCount(prompt) && isCount(completion) && (ofPrompt ?? null) === null && (ofCompletion ?? null) === null;
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function isTextOrNothing(value: unknown): boolean {
  return typeof value === "string" || value === null || value === undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
