import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { TextToContinue } from "#shared/protocol/complete-body.ts";

export const openAiServerKinds = ["vllm", "llama-server", "lm-studio", "mlx-lm", "openai"] as const; // "openai": any other
export type OpenAiServerKind = (typeof openAiServerKinds)[number];

/** A model as a request needs it. */
export interface ServedModel {
  /** As its runtime wants to be asked for it. */
  readonly name: string;
  readonly onAppleMlx?: boolean;
  /** Whether it has to be brought into memory first, where that is known. */
  readonly loaded?: boolean | undefined;
  /** Whether its runtime says that it is just being loaded. */
  readonly loading?: boolean | undefined;
  /** How many different tokens it has, where that is known. */
  readonly tokenCount?: number | undefined;
}

export type Tools = Pick<ChatBody, "tools" | "tool_choice">;

export type Effort = NonNullable<ChatBody["reasoning_effort"]>;

/** How a server continues texts; what is not here it does as in chats. */
export interface TextProfile {
  /** The fields that it honours, or that are honoured in its place. */
  readonly honoured: ReadonlySet<keyof TextToContinue>;
  /** Whether it may be given an empty text. */
  readonly takesEmpty: boolean;
  /** Where it cuts an answer short for which no limit was set. It is then told one that the window leaves room for. */
  readonly answerTokensUnset?: number;
  /** How many others it has to be asked for in place of each token, so that it tells likelihoods at all. */
  readonly logprobsMin?: number;
  /** Whether it takes thoughts and calls out of the text and says nothing in their place: such an answer has failed. */
  readonly leavesOutMarked?: boolean;
}

/**
 * How a server of the OpenAI shape differs from the others: what it takes, in which spelling, and what it would ignore
 * without a word and is therefore refused for it. Data and pure functions; they may throw a refusal.
 */
export interface OpenAiProfile {
  readonly kind: OpenAiServerKind;
  /** As its makers write it, for the operator. */
  readonly name: string;
  /** The fields of a chat that it honours, or that are honoured in its place. */
  readonly honoured: ReadonlySet<keyof ChatBody>;
  /** Whether it honours `n` by itself. */
  readonly answersSeveral: boolean;
  readonly takesImages: boolean;
  /**
   * What it does with a last message of the assistant's: goes on from it when it is told to, does as the model's
   * template says and may say it once more, or always begins a new turn.
   */
  readonly prefill: "continues" | "as-the-template" | "never";
  /** Fields that every chat is sent with. */
  readonly always: Readonly<Record<string, unknown>>;
  /** The tools and the choice of one as the server is to be asked for them. */
  readonly tools: (asked: Tools, model: ServedModel) => Tools;
  /** Whether it knows `parallel_tool_calls`. Calls beyond the first are left out in any case. */
  readonly takesParallelToolCalls: boolean;
  readonly responseFormat: (format: NonNullable<ChatBody["response_format"]>) => unknown;
  /** The fields that ask for this much thinking; a model that does not think is only ever asked for none. */
  readonly thinking: (effort: Effort, thinks: boolean) => Readonly<Record<string, unknown>>;
  /** The names by which it takes back what the model thought in earlier turns. */
  readonly reasoningFields: readonly string[];
  /** The content of an assistant's message that only called tools; undefined leaves the field out. */
  readonly contentBesideCalls: "" | null | undefined;
  /** Where it cuts an answer short for which no limit was set. It is then told one that the window leaves room for. */
  readonly answerTokensUnset?: number;
  /**
   * Whether it ends an answer exactly before a stop string. One that does not is told of none, and the answer is ended
   * in its place.
   */
  readonly endsAtStops: boolean;
  /** Whether it refuses a `max_tokens` that is more than the window, which no answer can ever reach. */
  readonly refusesLimitsOverWindow?: boolean;
  /** Whether it refuses to give several answers to this request, which is then asked as many times. */
  readonly refusesSeveral?: (body: ChatBody) => boolean;
  /** How long the prompt is at least, where it says so in a comment while it reads, and would read on over the window. */
  readonly promptTokensIn?: (comment: string) => number | undefined;
  /** Refuses combinations that the server cannot honour. */
  readonly refuse?: (body: ChatBody) => void;
  /** Whether a bias on a token that its model does not have ends it. */
  readonly diesOfUnknownTokens?: boolean;
  /** Whether it drops a tool call that it cannot read, and still says that tools were called. */
  readonly dropsUnreadableCalls: boolean;
  /** Whether it may be one that ignores `logprobs`: then an answer without any is refused. */
  readonly mayIgnoreLogprobs: boolean;
  readonly texts: TextProfile;
}
