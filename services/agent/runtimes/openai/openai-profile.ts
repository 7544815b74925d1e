import type { ChatBody, TextToContinue } from "#shared/protocol/job-bodies.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { RuntimeSampling } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { DescribedModel, Runtime } from "../runtime.ts";

export const openAiServerKinds = ["vllm", "llama-server", "lm-studio", "mlx-lm", "openai"] as const; // "openai": any other
export type OpenAiServerKind = (typeof openAiServerKinds)[number];

/** The facts of a model that a request needs. */
export interface RuntimeModel {
  /** The name that its runtime expects in a request. */
  readonly name: string;
  readonly onAppleMlx?: boolean | undefined;
  /** False if the model has to be loaded first; undefined where that is unknown. */
  readonly loaded?: boolean | undefined;
  /** True if its runtime reports that the model is being loaded now. */
  readonly loading?: boolean | undefined;
  /** True if its runtime leaves a stream, with `[DONE]` and no finish reason, as soon as another request comes. */
  readonly interrupts?: boolean | undefined;
  /** The number of different tokens of the model, where that is known. */
  readonly tokenCount?: number | undefined;
}

export type Tools = Pick<ChatBody, "tools" | "tool_choice">;

export type Effort = NonNullable<ChatBody["reasoning_effort"]>;

/** The properties of a server for completions. All others are the same as in chats. */
interface TextProfile {
  /** The fields that the server honours, or that its adapter honours in its place. */
  readonly honoured: ReadonlySet<keyof TextToContinue>;
  /** True if the server accepts an empty text. */
  readonly takesEmpty: boolean;
  /** As in chats. */
  readonly refuse?: (body: TextToContinue, model: RuntimeModel) => void;
  readonly answerTokensUnset?: number;
  /** The fewest alternatives to request for each token, so that the server reports logprobs at all. */
  readonly logprobsMin?: number;
  /**
   * True if the server silently removes reasoning and tool calls from the text. An answer with such a removal has
   * failed.
   */
  readonly leavesOutMarked?: boolean;
}

/**
 * The differences of one OpenAI-shaped server from the others: the fields that it takes, their spelling, and the fields
 * that it would ignore silently. The adapter refuses these ignored fields. A profile is data and pure functions, which
 * may throw a refusal.
 */
export interface OpenAiProfile {
  readonly kind: OpenAiServerKind;
  /** The server's names of the sampling fields beyond OpenAI's that it honours, in chats and in texts. */
  readonly sampling: Partial<Record<RuntimeSampling, string>>;
  /** The fields of a chat that the server honours, or that its adapter honours in its place. */
  readonly honoured: ReadonlySet<keyof ChatBody>;
  /** True if the server honours `n` itself. */
  readonly answersSeveral?: boolean;
  /**
   * True if the server shows the images of a tool's result to the model, whatever the template. For any other server, the
   * images follow the result in a message of the user.
   */
  readonly takesResultImages?: boolean;
  /**
   * The server's treatment of a last message of the assistant. `continues` goes on from it when told to.
   * `as-the-template` follows the model's template, and may repeat the message. `never` always begins a new turn.
   */
  readonly prefill: "continues" | "as-the-template" | "never";
  /** Fields that every chat is sent with. */
  readonly always?: Readonly<Record<string, unknown>>;
  /** Returns the tools of a request, and their choice, in the form that the server takes. */
  readonly tools: (wanted: Tools, model: RuntimeModel) => Tools;
  /**
   * True if the server knows `parallel_tool_calls`. If a request sets it to false, the agent drops calls beyond the
   * first in any case.
   */
  readonly takesParallelToolCalls: boolean;
  readonly responseFormat: (format: NonNullable<ChatBody["response_format"]>) => unknown;
  /** Returns the fields of a grammar or another rule for the whole answer, for a server that honours some. */
  readonly form?: (body: ChatBody) => Readonly<Record<string, unknown>>;
  /** Returns the fields that request this much thinking. A model that does not think only ever gets `none`. */
  readonly thinking: (effort: Effort, thinks: boolean) => Readonly<Record<string, unknown>>;
  /** The fields in which the server takes back the reasoning of earlier turns. */
  readonly reasoningFields: readonly string[];
  /** The content of an assistant's message that only called tools; undefined leaves the field out. */
  readonly contentBesideCalls: "" | null | undefined;
  /**
   * The limit at which the server cuts an answer short if none is set. The adapter then sends a limit that fits the
   * window.
   */
  readonly answerTokensUnset?: number;
  /**
   * True if the server ends an answer exactly before a stop string. For any other server, the adapter sends no stop
   * strings and ends the answer itself.
   */
  readonly endsAtStops: boolean;
  /** True if the server refuses a `max_tokens` that is more than the window, which no answer can ever reach. */
  readonly refusesLimitsOverWindow?: boolean;
  /** True if the server refuses several answers for this request. The request is then sent once for each answer. */
  readonly refusesSeveral?: (body: ChatBody) => boolean;
  /**
   * Reads the least length of the prompt from a comment that the server sends while it reads the prompt. For a server
   * that would read on past the window.
   */
  readonly promptTokensIn?: (comment: string) => number | undefined;
  /**
   * True if it tells the tokens so far with each chunk when it is asked to. Its chunks may hold several tokens, and a
   * token of an unfinished character has no chunk. Of several answers it tells only the tokens of the chunk's own.
   */
  readonly tellsTokensSoFar?: boolean;
  /** True if it knows `cache_salt`, which keeps the cached prompts of different senders apart. */
  readonly saltsCache?: boolean;
  /** Refuses values and combinations that the server cannot honour. */
  readonly refuse?: (body: ChatBody, model: RuntimeModel) => void;
  /**
   * True if the server may fail silently in a stream. The same request without a stream would be refused with a reason.
   */
  readonly failsSilently?: boolean;
  /** True if the server drops a tool call that it cannot parse, and still reports that tools were called. */
  readonly dropsUnreadableCalls?: boolean;
  /** True if the server may ignore `logprobs`. An answer without logprobs is then refused. */
  readonly mayIgnoreLogprobs?: boolean;
  readonly texts: TextProfile;
}

/** The server and the model that a request goes to. */
export interface Served {
  readonly profile: OpenAiProfile;
  readonly model: RuntimeModel;
}

/** A server that takes OpenAI's fields as they are. The profile of a server names its differences from it. */
export const plainServer = {
  sampling: {},
  tools: (wanted) => wanted,
  takesParallelToolCalls: true,
  responseFormat: (format) => format,
  reasoningFields: ["reasoning_content"],
  contentBesideCalls: null,
  endsAtStops: true,
} as const satisfies Partial<OpenAiProfile>;

/** One OpenAI-shaped server: its profile, and the facts of its models that only its own interfaces report. */
export interface OpenAiServer extends Pick<Runtime, "working" | "close" | "slotsPerModel" | "version"> {
  readonly profile: OpenAiProfile;
  /** The number of jobs that the server runs at once, as far as is known yet. */
  readonly slots: number;
  /** True if the server reports neither a limit nor its load, so that `slots` is a guess. */
  readonly guessesSlots?: boolean;
  /** True if the server has an interface for embeddings. */
  readonly embeds: boolean;
  /** True if the server may have `/v1/rerank`. The catalogue or the operator says which models rerank. */
  readonly reranks?: boolean;
  /** True if the server has `/tokenize` and `/detokenize`. */
  readonly tokenizes?: boolean;
  /** The actions on models, which take the model's name at the server. */
  readonly manages?: Runtime["manages"];
  catalogue(signal: AbortSignal): Promise<readonly (DescribedModel & RuntimeModel)[]>;
  /** Returns the tokens of the prompt of a request for `/v1/chat/completions`. Requests with images do not come here. */
  count?(request: Fields, signal: AbortSignal): Promise<number>;
}

/** The parts that a server of any kind is opened with. */
export interface OpenAiServerOptions {
  readonly connection: RuntimeConnection;
  readonly clock: Clock;
  /** The Hugging Face cache on this host. */
  readonly hubFolder: string;
  readonly platform: string;
}

/** Fields of a request or an answer, as their server has them. */
export type Fields = Readonly<Record<string, unknown>>;

/** The abilities that a probe of a model finds. */
export type Probed = Pick<DescribedModel, "capabilities" | "furtherAbilities">;

/**
 * Returns `tool_choice` as a word, for servers that take only words. A named function becomes the only offered tool.
 */
export function choiceInWords(wanted: Tools): Tools {
  const { tools, tool_choice: choice } = wanted;
  if (choice === undefined || typeof choice === "string") return wanted;
  return { tools: tools?.filter((tool) => tool.function.name === choice.function.name), tool_choice: "required" };
}
