import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { ContextOverflow, toldOverflow, type TooLong } from "../context-overflow.ts";
import { generate } from "./gguf-generate.ts";
import type { Sampling, Token } from "./gguf-library.ts";
import type { LoadedModel } from "./gguf-model.ts";
import type { ChatRun } from "../runtime.ts";
import { TokenText } from "./token-text.ts";

/** Reads what a model writes, piece by piece, and makes events of it. */
export interface Reader {
  /** Whether the answer is complete, whatever the model would still write. */
  readonly complete: boolean;
  /** Whether the model is in the middle of its thoughts. */
  readonly thinking: boolean;
  /** Whether a text that steers the model tells this reader something. */
  reads(text: string): boolean;
  push(piece: string): AnswerEvent[];
  /** The model has ended, of its own accord or because it was cut off. */
  end(cutOff: boolean): AnswerEvent[];
}

/** A prompt on a model that is loaded, and how what follows is chosen and read. */
export interface Saying {
  readonly loaded: LoadedModel;
  readonly prompt: readonly Token[];
  /** The field that the prompt came in. */
  readonly param: TooLong["param"];
  readonly reader: Reader;
  readonly sampling: (said: () => readonly Token[]) => Sampling;
  readonly tokensMax: number | undefined;
  readonly contextWindow: number;
  readonly signal: AbortSignal;
  readonly onProgress: ChatRun["onProgress"];
}

/** Lets the model go on from a prompt, and tells what it says, why it ended and what it took. */
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

/** The text of a token. Those that steer are silent unless they tell the reader something. */
function heard(token: Token, means: { loaded: LoadedModel; text: TokenText; reader: Reader }): string {
  const { loaded, text, reader } = means;
  const { model } = loaded;
  if (model.getTokenAttributes(token).control && !reader.reads(model.detokenize([token], true))) return text.end();
  return text.push(token);
}

/** How much prompt and answer may take together. What leaves no room for an answer is refused, and never cut. */
function windowOf({ loaded, prompt, param, contextWindow }: Saying): number {
  const window = Math.min(loaded.windowTokens, contextWindow);
  if (prompt.length < window) return window;
  const overflow = new ContextOverflow({ promptTokens: prompt.length, windowTokens: window }, "counted by the engine");
  throw toldOverflow(overflow, { param, contextWindow: window, estimatedTokens: prompt.length });
}

function engineFailed(error: unknown): Fault {
  return new Fault("upstream_error", {
    message: "The runtime failed in the middle of the answer.",
    internal: error instanceof Error ? (error.stack ?? error.message) : String(error),
    cause: error,
  });
}
