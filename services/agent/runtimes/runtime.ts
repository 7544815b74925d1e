import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { Capabilities } from "#shared/model/model.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { TextToContinue } from "#shared/protocol/complete-body.ts";
import type { EmbedBody } from "#shared/protocol/embed-body.ts";
import type { ManageAction, ManageProgress } from "#shared/protocol/manage-job.ts";
import type { Answering } from "./answering.ts";

/** What a runtime is at while it says nothing yet. */
export type Silence = "loading" | "prefill";

interface Run {
  /** The model by the id that its runtime gave it in its catalogue. */
  readonly model: string;
  /** What the model can do and how much it reads at once, as this machine offers it. */
  readonly capabilities: Capabilities;
  readonly contextWindow: number;
  /** Aborts when nobody waits for the answer any more. The adapter then closes its request to the runtime at once. */
  readonly signal: AbortSignal;
  /** To be called whenever the runtime shows that it works, also while it says nothing yet, and then with what it is at. */
  readonly onProgress: (silence?: Silence) => void;
}

/** A chat that the model is able to do: what its capabilities exclude was refused before. */
export interface ChatRun extends Run {
  readonly body: ChatBody;
}

/** A text to be continued as it is: no template, no tools, no thoughts told apart. */
export interface CompleteRun extends Run {
  readonly body: TextToContinue;
}

export interface EmbedRun extends Run {
  readonly body: EmbedBody;
}

export interface ManageRun {
  readonly action: ManageAction;
  /** As the operator wrote it: a model to be pulled has no other name yet. */
  readonly model: string;
  readonly signal: AbortSignal;
}

/** A model as its runtime describes it. What the runtime cannot tell is left out, and the agent completes it. */
export interface DescribedModel {
  readonly id: string;
  readonly createdSeconds?: number | undefined;
  readonly ownedBy: string;
  readonly capabilities: Partial<Capabilities>;
  /** The window that the machine really runs, or would if the model were loaded now. */
  readonly contextTokens?: number | undefined;
  readonly sizeBytes?: number | undefined;
  /** Whether it runs on MLX on Apple silicon. */
  readonly onAppleMlx?: boolean | undefined;
  readonly loaded?: boolean | undefined;
}

/**
 * A local model server as the agent sees it: the port that every adapter implements.
 *
 * What goes wrong is thrown as a `Fault` whose public message names neither addresses nor the runtime's own text;
 * what the runtime cannot honour is refused with `unsupported_parameter` before anything is asked of it.
 */
export interface Runtime {
  /** As presence and the operator's messages name it: `ollama`, `vllm`, `llama-server`, `scripted`. */
  readonly name: string;
  /** Where it is, for the operator; a runtime inside the agent's own process is nowhere. */
  readonly origin?: string | undefined;
  /** How many jobs it runs at once: of one model where `slotsPerModel` is true, of all its models together otherwise. */
  readonly slots: number;
  readonly slotsPerModel?: boolean;
  /** Whether it honours `n` by itself. Of any other the agent asks as many answers as are wanted, one after the other. */
  readonly answersSeveral?: boolean;
  /** What it offers just now. Rejects when the runtime does not answer. */
  catalogue(signal: AbortSignal): Promise<readonly DescribedModel[]>;
  /**
   * Runs one chat and yields its events in batches, one batch for each read from the runtime. A run that ends without
   * a `finish` event has failed, whatever it said before.
   */
  chat(run: ChatRun): Answering;
  /**
   * Continues one text, and yields its events like a chat: `text`, one `finish`, and `usage`. How likely tokens were is
   * told in the chat's form, whatever the runtime's own. A runtime without this has no way to be given a bare text.
   */
  complete?(run: CompleteRun): Answering;
  /** One `embedding` event for each text, and one `usage`. A runtime without this cannot embed. */
  embed?(run: EmbedRun): AsyncIterable<readonly AnswerEvent[]>;
  /** What can be done with its models, and how; each yields how far it has come. */
  readonly manages?: Partial<Record<ManageAction, (run: ManageRun) => AsyncIterable<ManageProgress>>>;
  /** How many requests it works on just now, whoever sent them. A runtime without this cannot be asked. */
  working?(signal: AbortSignal): Promise<number>;
  /** Lets go of what is open, for an adapter that keeps connections. */
  close?(): Promise<void>;
}
