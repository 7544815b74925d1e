import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault, originOf } from "#shared/fault/fault.ts";
import { ContextOverflow, toldOverflow, type TooLong } from "../context-overflow.ts";
import { generate } from "./gguf-generate.ts";
import type { Sampling, Token } from "./gguf-library.ts";
import type { LoadedModel } from "./gguf-model.ts";
import type { ChatRun } from "../runtime.ts";
import { TokenText } from "./token-text.ts";

/** Reads a model's output piece by piece and turns it into answer events. */
export interface Reader {
  /** True if the answer is complete, even if the model would write more. */
  readonly complete: boolean;
  /** True while the model writes its thoughts. */
  readonly thinking: boolean;
  /** True if the text of a control token matters to this reader. */
  reads(text: string): boolean;
  push(piece: string): AnswerEvent[];
  /** Ends the answer. `cutOff` is true if the answer reached its token limit. */
  end(cutOff: boolean): AnswerEvent[];
}

/** A prompt for a loaded model, with the sampling and the reader of its answer. */
export interface Saying {
  readonly loaded: LoadedModel;
  readonly prompt: readonly Token[];
  /** The request's field that the prompt came in. */
  readonly param: TooLong["param"];
  readonly reader: Reader;
  readonly sampling: (said: () => readonly Token[]) => Sampling;
  readonly tokensMax: number | undefined;
  readonly contextWindow: number;
  readonly signal: AbortSignal;
  readonly onProgress: ChatRun["onProgress"];
}

/** Generates an answer to a prompt. Yields its events, then the finish reason and the usage. */
export async function* say(saying: Saying): AsyncGenerator<readonly AnswerEvent[]> {
  const { loaded, prompt, reader, signal, onProgress } = saying;
  const { model, sequences, batchTokens } = loaded;
  const windowTokens = windowOf(saying);
  if (sequences === undefined) throw new Error("a model without sequences was asked for an answer");
  await using taken = await sequences.take(prompt, signal);
  const { sequence } = taken;

  const said: Token[] = [];
  const text = new TokenText(model, prompt);
  const count = { promptTokens: prompt.length, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  const generation = generate({
    sequence,
    prompt,
    sampling: saying.sampling(() => said),
    tokensMax: Math.min(saying.tokensMax ?? Infinity, windowTokens - prompt.length),
    batchTokens,
    signal,
    onPrefill: () => onProgress("prefill"),
    onRemembered: (remembered) => (count.cachedTokens = remembered),
  });
  let ended = true;
  try {
    for (;;) {
      const { value, done } = await generation.next();
      if (done) {
        ended = value;
        break;
      }
      onProgress();
      said.push(value);
      if (reader.thinking) count.reasoningTokens += 1;
      const events = reader.push(heard(value, { loaded, text, reader }));
      if (events.length > 0) yield events;
      if (reader.complete) break;
    }
  } catch (error) {
    signal.throwIfAborted();
    await sequence.clearHistory();
    throw error instanceof Fault ? error : engineFailed(error);
  } finally {
    await generation.return(true);
  }
  count.completionTokens = said.length;
  const { reasoningTokens, ...plain } = count;
  yield [
    ...reader.push(reader.complete ? "" : text.end()),
    ...reader.end(!ended),
    { kind: "finish", reason: ended ? "stop" : "length" },
    { kind: "usage", ...plain, ...(reasoningTokens > 0 && { reasoningTokens }) },
  ];
}

/** Returns the text of a token. A control token adds no text unless `reader` reads it. */
function heard(token: Token, means: { loaded: LoadedModel; text: TokenText; reader: Reader }): string {
  const { loaded, text, reader } = means;
  const { model } = loaded;
  if (model.getTokenAttributes(token).control && !reader.reads(model.detokenize([token], true))) return text.end();
  return text.push(token);
}

/** Returns the tokens that prompt and answer may take together. Refuses a prompt that leaves no room; never cuts it. */
function windowOf({ loaded, prompt, param, contextWindow }: Saying): number {
  const window = Math.min(loaded.windowTokens, contextWindow);
  if (prompt.length < window) return window;
  const overflow = new ContextOverflow({ promptTokens: prompt.length, windowTokens: window }, "counted by the engine");
  throw toldOverflow(overflow, { param, contextWindow: window, estimatedTokens: prompt.length });
}

function engineFailed(error: unknown): Fault {
  return new Fault("upstream_error", {
    message: "The runtime failed in the middle of the answer.",
    internal: originOf(error),
    cause: error,
  });
}
