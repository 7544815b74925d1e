import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { TextToContinue } from "#shared/protocol/complete-body.ts";
import type { Engine } from "./gguf-engine.ts";
import type { Model, Token } from "./gguf-library.ts";
import type { GgufModel } from "./gguf-model.ts";
import { withBeginning } from "./gguf-prompt.ts";
import { samplingOf } from "./gguf-sampling.ts";
import { say, type Reader } from "./gguf-say.ts";
import { honouringInTexts, nothingToContinue, refuseUnsupportedText } from "../refuse-unsupported-text.ts";
import type { CompleteRun } from "../runtime.ts";
import { StopCutter } from "../stop-cutter.ts";

const honoured = honouringInTexts("suffix", "logit_bias");

/** Continues one text on a model of this process. */
export async function* ggufText(means: {
  readonly run: CompleteRun;
  readonly gguf: GgufModel;
  readonly engine: Engine;
}): AsyncGenerator<readonly AnswerEvent[]> {
  const { run, gguf, engine } = means;
  const { body, contextWindow, onProgress } = run;
  const { library } = engine;
  refuseUnsupportedText(body, honoured);
  const signal = AbortSignal.any([run.signal, gguf.closing]);
  using held = await gguf.use(() => onProgress("loading"));
  signal.throwIfAborted();
  const { model } = held.loaded;
  const prompt = withBeginning(textTokens(body, model), model);
  if (prompt.length === 0) throw nothingToContinue();
  yield* say({
    loaded: held.loaded,
    prompt,
    param: "prompt",
    reader: new TextReader(body.stop ?? []),
    sampling: (said) => samplingOf({ body, file: gguf.file, library, model, said }),
    tokensMax: body.max_tokens,
    contextWindow,
    signal,
    onProgress,
  });
}

/**
 * Returns the tokens of a prompt. A client that sends a bare text writes the model's marks itself, so they become
 * control tokens. The text around a gap (`suffix`) is code, in which nothing is meant for the model. Marks in it stay
 * text.
 */
function textTokens({ prompt, suffix }: TextToContinue, model: Model): Token[] {
  if (suffix === undefined) return model.tokenize(prompt, true);
  const { prefix: before, suffix: after, middle } = model.tokens.infill;
  if (before === null || after === null || middle === null) throw fillsNothingIn();
  const plain = (text: string): Token[] => model.tokenize(text, false, "trimLeadingSpace");
  return [before, ...plain(prompt), after, ...plain(suffix), middle];
}

/** Reads all output of the model as text. */
class TextReader implements Reader {
  readonly thinking = false;
  readonly #cutter: StopCutter;

  constructor(stops: readonly string[]) {
    this.#cutter = new StopCutter(stops);
  }

  get complete(): boolean {
    return this.#cutter.stopped;
  }

  reads(): boolean {
    return false;
  }

  push(piece: string): AnswerEvent[] {
    return textEvents(this.#cutter.push(piece));
  }

  end(): AnswerEvent[] {
    return textEvents(this.#cutter.end());
  }
}

function textEvents(text: string): AnswerEvent[] {
  return text === "" ? [] : [{ kind: "text", text }];
}

function fillsNothingIn(): Fault {
  return new Fault("unsupported_parameter", {
    message: "The model was not made to fill in a gap, so there can be no 'suffix'.",
    param: "suffix",
  });
}
