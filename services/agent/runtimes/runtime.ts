import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { MediaBody } from "#shared/protocol/media-body.ts";
import type { Capabilities, FurtherAbility, ModelDetails, OwnSampling } from "#shared/protocol/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type {
  ChatBody,
  TextToContinue,
  EmbedBody,
  RankBody,
  ManageAction,
  ManageProgress,
} from "#shared/protocol/job-bodies.ts";

/**
 * Takes the next events of an answer, in the runtime's order. An adapter emits one batch for each read from its runtime,
 * and reads no further until a returned promise settles. An error of the taker ends the request to the runtime.
 */
export type EmitEvents = (events: readonly AnswerEvent[]) => Promise<void> | undefined;

/** The work of a runtime that sends no output yet. */
export type Silence = "loading" | "prefill";

interface Run<Body> {
  readonly body: Body;
  /** The model's id in the catalogue of its runtime. */
  readonly model: string;
  /** The model's capabilities and context window, as this machine offers them. */
  readonly capabilities: Capabilities;
  readonly contextWindow: number;
  /** Cache salt, for runtimes that support it: they reuse a cached prompt only for runs with the same salt. */
  readonly cacheSalt?: string | undefined;
  /** The trace that the answer belongs to, for a runtime that makes spans of its own. */
  readonly traceparent?: string | undefined;
  /**
   * Aborts when no client waits for the answer any more. The adapter then closes its request to the runtime at once.
   */
  readonly signal: AbortSignal;
  /** Called whenever the runtime shows that it works. While it sends no output, the call names its work. */
  readonly onProgress: (silence?: Silence) => void;
}

/** A chat that the model can run. Chats that its capabilities exclude were refused before. */
export type ChatRun = Run<ChatBody>;

/** A text to continue unchanged: no template, no tools, no separate reasoning. */
export type CompleteRun = Run<TextToContinue>;

export type EmbedRun = Run<EmbedBody>;
export type RerankRun = Run<RankBody>;
export type MediaRun = Run<MediaBody>;

/** The vectors of a request to embed, one for each text in their order. */
export interface Embeddings {
  readonly vectors: readonly number[][];
  readonly promptTokens: number;
}

export interface ManageRun {
  readonly action: ManageAction;
  /** The name as the operator wrote it: a model to pull has no other name yet. */
  readonly model: string;
  readonly signal: AbortSignal;
  readonly onProgress: (progress: ManageProgress) => void;
}

/** A model as its runtime describes it. The agent completes the fields that the runtime does not report. */
export interface DescribedModel {
  readonly id: string;
  readonly createdSeconds?: number | undefined;
  readonly ownedBy: string;
  readonly capabilities: Partial<Capabilities>;
  /** The abilities beside its capabilities that the runtime reports, or that a probe showed. */
  readonly furtherAbilities?: readonly FurtherAbility[] | undefined;
  /** The window that the runtime uses on this machine, or would use if the model were loaded now. */
  readonly contextTokens?: number | undefined;
  readonly sizeBytes?: number | undefined;
  /** Equal on two machines only if weights, quantisation, template and tokenizer are. It begins with the runtime's kind. */
  readonly digest?: string | undefined;
  /** The model's weights, where the runtime reports them. */
  readonly details?: ModelDetails | undefined;
  readonly sampling?: OwnSampling | undefined;
  /** True if the model runs on MLX on Apple silicon. */
  readonly onAppleMlx?: boolean | undefined;
  readonly loaded?: boolean | undefined;
  /** The memory that the model takes, where the runtime reports it. */
  readonly memoryBytes?: number | undefined;
}

/**
 * A local model server as the agent sees it: the port that every adapter implements.
 *
 * An adapter throws failures as a `Fault`. The public message names no address and quotes no text of the runtime. An
 * adapter refuses unsupported fields with `unsupported_parameter` before it sends a request to the runtime.
 */
export interface Runtime {
  /** Name in presence and in messages to the operator: `ollama`, `vllm`, `llama-server`, `scripted`. */
  readonly name: string;
  /** Address of the runtime, shown to the operator; undefined for a runtime inside the agent's own process. */
  readonly origin?: string | undefined;
  /**
   * The number of jobs that the runtime runs at once: for each model if `slotsPerModel` is true, for all its models
   * together otherwise.
   */
  readonly slots: number;
  readonly slotsPerModel?: boolean;
  /** True if `slots` is a guess, since the runtime reports no number. */
  readonly guessesSlots?: boolean;
  /** The version of the runtime at the last look, where it is known: an upgrade may change how a template is applied. */
  readonly version?: string | undefined;
  /** Questions that the runtime answers in text, with and without a thought before it; for one without a real model. */
  readonly proofQuestions?: readonly string[];
  /**
   * True if the runtime honours `n` itself. For any other runtime, the agent requests the answers one after the other.
   */
  readonly answersSeveral?: boolean;
  /**
   * True if the server's kind is unknown. Another request may disturb its answers, so the agent sends none while a job
   * runs.
   */
  readonly unknownKind?: boolean;
  /** Returns the models that the runtime offers now. Rejects when the runtime does not answer. */
  catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]>;
  /**
   * Runs one chat and emits its events. Rejects when the run fails, after it emitted the events before the failure. A
   * run that ends without a `finish` event has failed too.
   */
  chat(run: ChatRun, emit: EmitEvents): Promise<void>;
  /**
   * Returns the tokens of a chat's prompt, as `chat` would report them, without running it. It takes no slot and loads
   * no model. A runtime without this method cannot count.
   */
  count?(run: ChatRun): Promise<number>;
  /**
   * Continues one text, and emits its events like a chat: `text`, one `finish`, and `usage`. Logprobs come in the chat's
   * form, whatever the runtime's own form. A runtime without this method cannot take a bare text.
   */
  complete?(run: CompleteRun, emit: EmitEvents): Promise<void>;
  /** Embeds texts. A runtime without this method cannot embed. */
  embed?(run: EmbedRun): Promise<Embeddings>;
  /** Scores documents by their relevance to a query, in their order. A runtime without this method cannot rerank. */
  rerank?(run: RerankRun): Promise<{ scores: number[]; promptTokens: number }>;
  /** Asks the runtime about speech or images, and emits its answer. A runtime without this method has no such paths. */
  media?(run: MediaRun, emit: EmitEvents): Promise<void>;
  /** The supported actions on models, and how to run each. */
  readonly manages?: Partial<Record<ManageAction, (run: ManageRun) => Promise<void>>>;
  /**
   * Returns the number of requests that the runtime works on now, from all senders. A runtime without this method does
   * not report it.
   */
  working?(signal: AbortSignal): Promise<number>;
  /** The answers that had bytes which are no UTF-8. */
  readonly answersNotUtf8?: number;
  /** Closes what is open, for an adapter that keeps connections. */
  close?(): Promise<void>;
}

/** The address of a possible runtime, and the operator's settings for it. */
export interface RuntimeSite {
  /** The base URL of the runtime, without `/v1`. */
  readonly url: string;
  readonly apiKey?: string | undefined;
  /** The number of jobs that the runtime runs at once, where the operator overrides the reported number. */
  readonly slots?: number | undefined;
  readonly clock: Clock;
  readonly log?: Pick<Log, "warn"> | undefined;
}
