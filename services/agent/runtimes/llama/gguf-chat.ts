import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { ContextOverflow, toldOverflow } from "../context-overflow.ts";
import { GgufAnswer } from "./gguf-answer.ts";
import type { Engine } from "./gguf-engine.ts";
import { generate } from "./gguf-generate.ts";
import { answerGrammar } from "./gguf-grammar.ts";
import type { Grammar, Token } from "./gguf-library.ts";
import type { GgufModel, LoadedModel } from "./gguf-model.ts";
import { promptTokens, writePrompt } from "./gguf-prompt.ts";
import { samplingOf } from "./gguf-sampling.ts";
import type { GgufTemplate } from "./gguf-template.ts";
import { honouring, refuseUnsupported } from "../refuse-unsupported.ts";
import type { ChatRun } from "../runtime.ts";
import { TokenText } from "./token-text.ts";

const honoured = honouring("logit_bias", "response_format");

interface Means {
  readonly run: ChatRun;
  readonly gguf: GgufModel;
  readonly template: GgufTemplate;
  readonly engine: Engine;
}

/** One chat on a model of this process. */
export async function* ggufChat(means: Means): AsyncGenerator<readonly AnswerEvent[]> {
  const { run, gguf, template, engine } = means;
  const { body, onProgress } = run;
  refuseUnsupported(body, honoured);
  const prompt = writePrompt({ template, file: gguf.file, body });
  const text = answerGrammar({ body, template, thinking: prompt.thinking });
  const grammar = text === undefined ? undefined : await createGrammar(text, means);
  const signal = AbortSignal.any([run.signal, gguf.closing]);
  using held = await gguf.use(() => onProgress("loading"));
  signal.throwIfAborted();
  const { model } = held.loaded;
  const tokens = promptTokens(prompt, model);
  const windowTokens = windowOf(means, held.loaded, tokens);
  const answer = new GgufAnswer({ template, body, thinking: prompt.thinking });
  yield* answerFrom(means, { loaded: held.loaded, tokens, windowTokens, answer, grammar, signal, engine });
}

async function* answerFrom(
  { run, gguf }: Means,
  at: {
    readonly loaded: LoadedModel;
    readonly tokens: readonly Token[];
    readonly windowTokens: number;
    readonly answer: GgufAnswer;
    readonly grammar: Grammar | undefined;
    readonly signal: AbortSignal;
    readonly engine: Engine;
  },
): AsyncGenerator<readonly AnswerEvent[]> {
  const { loaded, tokens, windowTokens, answer, grammar, signal, engine } = at;
  const { body, onProgress } = run;
  const { library } = engine;
  const { model, sequences, batchTokens } = loaded;
  if (sequences === undefined) throw new Error("a model without sequences was asked for an answer");
  await using taken = await sequences.take(tokens, signal);
  const { sequence } = taken;

  const said: Token[] = [];
  const text = new TokenText(model, tokens);
  const count = { promptTokens: tokens.length, completionTokens: 0, cachedTokens: 0, reasoningTokens: 0 };
  const sampling = {
    ...samplingOf({ body, file: gguf.file, library, model, said: () => said }),
    ...(grammar !== undefined && {
      grammarEvaluationState: new library.LlamaGrammarEvaluationState({ model, grammar }),
    }),
  };
  const generation = generate({
    sequence,
    prompt: tokens,
    sampling,
    tokensMax: Math.min(body.max_tokens ?? Infinity, windowTokens - tokens.length),
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
      if (answer.thinking) count.reasoningTokens += 1;
      const events = answer.push(heard(value, { loaded, text, answer }));
      if (events.length > 0) yield events;
      if (answer.complete) break;
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
    ...answer.push(answer.complete ? "" : text.end()),
    ...answer.end(!ended),
    { kind: "finish", reason: ended ? "stop" : "length" },
    { kind: "usage", ...plain, ...(reasoningTokens > 0 && { reasoningTokens }) },
  ];
}

/** The text of a token. Those that steer are silent unless they tell thoughts, text and calls apart. */
function heard(token: Token, means: { loaded: LoadedModel; text: TokenText; answer: GgufAnswer }): string {
  const { loaded, text, answer } = means;
  const { model } = loaded;
  if (model.getTokenAttributes(token).control && !answer.reads(model.detokenize([token], true))) return text.end();
  return text.push(token);
}

/** How much prompt and answer may take together. What leaves no room for an answer is refused, and never cut. */
function windowOf({ run }: Means, { windowTokens }: LoadedModel, tokens: readonly Token[]): number {
  const window = Math.min(windowTokens, run.contextWindow);
  if (tokens.length < window) return window;
  const overflow = new ContextOverflow({ promptTokens: tokens.length, windowTokens: window }, "counted by the engine");
  throw toldOverflow(overflow, { param: "messages", contextWindow: window, estimatedTokens: tokens.length });
}

async function createGrammar(grammar: string, { engine, run }: Means): Promise<Grammar> {
  try {
    return await engine.llama.createGrammar({ grammar });
  } catch (error) {
    const param = run.body.response_format === undefined ? "tool_choice" : "response_format";
    throw new Fault("unsupported_value", {
      message: `The runtime of this model cannot hold an answer to this '${param}'.`,
      param,
      internal: String(error),
    });
  }
}

function engineFailed(error: unknown): Fault {
  return new Fault("upstream_error", {
    message: "The runtime failed in the middle of the answer.",
    internal: error instanceof Error ? (error.stack ?? error.message) : String(error),
    cause: error,
  });
}
