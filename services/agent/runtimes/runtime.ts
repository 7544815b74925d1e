import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { Catalogue } from "#shared/model/model.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";

export interface ChatRun {
  readonly model: string;
  readonly body: ChatBody;
  /** Aborts when nobody waits for the answer any more. The adapter then closes its request to the runtime at once. */
  readonly signal: AbortSignal;
  /** To be called whenever the runtime shows that it works, also while it says nothing yet (loading, prefill). */
  readonly onProgress: () => void;
}

/**
 * A local model server as the agent sees it: the port that every adapter implements.
 *
 * What goes wrong is thrown as a `Fault` whose public message names neither addresses nor the runtime's own text;
 * what the runtime cannot honour is refused with `unsupported_parameter` before anything is asked of it.
 */
export interface Runtime {
  /** As presence and the operator's messages name it: `ollama`, `scripted`. */
  readonly name: string;
  /** How many jobs it runs at once. */
  readonly slots: number;
  /** What it offers just now. Rejects when the runtime does not answer. */
  catalogue(signal: AbortSignal): Promise<Catalogue>;
  /**
   * Runs one chat and yields its events in batches, one batch for each read from the runtime. A run that ends without
   * a `finish` event has failed, whatever it said before.
   */
  chat(run: ChatRun): AsyncIterable<readonly AnswerEvent[]>;
  /** Lets go of what is open, for an adapter that keeps connections. */
  close?(): Promise<void>;
}
