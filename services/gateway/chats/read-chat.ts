import { type ChatBody, numberBounds, unknownFields } from "#shared/protocol/job-bodies.ts";
import { limits } from "#shared/protocol/limits.ts";
import { paramOf } from "../http/shape-faults.ts";
import { chatCeiling, estimatePrompt, estimateTokens } from "../limits/token-estimates.ts";
import { upperEstimate, type UpperEstimate } from "../limits/upper-estimate.ts";
import { jobBody, type ReadRequest, type Translated } from "../requests/read-request.ts";
import type { RequestImages } from "../requests/request-fields.ts";
import { blocksOfChat } from "../routing/prompt-blocks.ts";
import { type ClientToolNames, nameToolsForMachines } from "./request-tools.ts";
import { steadyPrompt, type SteadyOptions } from "./steady-prompt.ts";

export const messagesMax = 10_000;

/** A request of an API of chats, translated to the body of its job. */
export type ReadChatRequest<Form = unknown> = Translated<ChatBody, Form> & RequestImages;

/** The parts of a chat that its answer needs, in all APIs. */
export interface ChatForm {
  /** The client's names of tools that were renamed for machines. */
  readonly toolNames?: ClientToolNames | undefined;
  /** The paths of the bounds of numbers in its schema, which some runtimes do not hold; undefined for none. */
  readonly bounds?: readonly string[] | undefined;
  /** For a count: the tokens of the prompt, estimated from above, and behind each of its known prefixes. */
  readonly upper?: UpperEstimate | undefined;
}

export interface ChatReading extends SteadyOptions {
  readonly promptSeed?: number | undefined;
  /** True if the tokens of the prompt are wanted in place of an answer. */
  readonly counts?: boolean;
}

/** Reads a request of any API of chats as the job of a chat, with the front of its prompt as it was the turn before. */
export function readAsChat<Form>(
  { body: given, imageParam, ...request }: ReadChatRequest<Form>,
  reading: ChatReading,
): ReadRequest<Form & ChatForm> {
  const isSteady = !reading.foldsSystem && given.messages[0]?.role !== "system";
  const { body: steady, ignored } = isSteady ? { body: given, ignored: [] } : steadyPrompt(given, reading);
  const { body, toolNames } = steady.tools === undefined ? { body: steady } : nameToolsForMachines(steady);
  const prompt = blocksOfChat(body, reading.promptSeed ?? 0);
  const promptTokens = estimatePrompt(body);
  const job = jobBody(body);
  const indexes = prompt.turns.map(({ index }) => index);
  const bounds = body.response_format?.type === "json_schema" ? boundsOf(body) : undefined;
  const upper = reading.counts === true ? upperEstimate(body, indexes) : undefined;
  return {
    ...request,
    kind: "chat",
    ignored: [...request.ignored, ...ignored],
    form: { ...request.form, toolNames, bounds, upper },
    needs: {
      capability: "completion",
      tools: body.tools !== undefined,
      imageParam,
      promptTokens,
      answerTokensMax: body.max_tokens,
      answers: body.n,
      prompt,
    },
    ...job,
    promptTokens,
    tokens: estimateTokens(body, promptTokens),
    ceiling: chatCeiling(body, job.body.byteLength),
  };
}

/** Returns the paths of the bounds of numbers in the schema of an answer; undefined if there are none. */
function boundsOf({ response_format }: ChatBody): readonly string[] | undefined {
  const withoutBounds: unknown = JSON.parse(JSON.stringify({ response_format }), (key, value: unknown) =>
    typeof value === "number" && numberBounds.includes(key) ? undefined : value,
  );
  const found = unknownFields({ response_format }, withoutBounds).map(paramOf);
  return found.length === 0 ? undefined : found;
}

/** Up to this size a count is read in the main thread: its estimate takes three times as long as the rest. */
const countedHereBytesMax = limits.partBytes / 4;

/** True if a chat of `size` bytes that is counted is read in a thread. */
export const isSlowToCount = (_: Buffer, size: number): boolean => size > countedHereBytesMax;
