import { z } from "zod";
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

/** One event of an answer, of which every server leaves other parts out. Extras that are malformed count as left out. */
const chatChunk = z.object({
  choices: z.array(choice).nullish(),
  usage: toldUsage.nullish().catch(undefined),
  prompt_progress: z.unknown().optional(),
});
type ChatChunk = z.infer<typeof chatChunk>;

/** Reads the value of an event, which is a fault where it makes no sense. */
export function readChatChunk(value: unknown): ChatChunk {
  return isPlainChunk(value) ? value : readChunkBySchema(value);
}

/** The same by the schema alone, for what is not plain. */
export function readChunkBySchema(value: unknown): ChatChunk {
  const parsed = chatChunk.safeParse(value);
  if (!parsed.success) throw senseless(parsed.error.message);
  return parsed.data;
}

/**
 * Whether this is a chunk as nearly all are: one choice that tells a piece of text or nothing, and nothing else, or no
 * choice and what the answer took. To look at it costs a tenth of what the schema takes, which reads all others, and which
 * would read this one as it is.
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

/** Details are told in more ways than one. */
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
