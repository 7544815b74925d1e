import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault, originOf } from "#shared/fault/fault.ts";
import { GgufAnswer } from "./gguf-answer.ts";
import type { Engine } from "./gguf-engine.ts";
import { answerGrammar } from "./gguf-grammar.ts";
import type { Grammar } from "./gguf-library.ts";
import type { GgufModel } from "./gguf-model.ts";
import { promptTokens, writePrompt } from "./gguf-prompt.ts";
import { samplingOf } from "./gguf-sampling.ts";
import { say } from "./gguf-say.ts";
import type { GgufTemplate } from "./gguf-template.ts";
import { honouring, refuseUnsupported } from "../refuse-unsupported.ts";
import type { ChatRun } from "../runtime.ts";

const honoured = honouring("logit_bias", "response_format");

interface Means {
  readonly run: ChatRun;
  readonly gguf: GgufModel;
  readonly template: GgufTemplate;
  readonly engine: Engine;
}

/** Answers one chat on a model of this process. */
export async function* ggufChat(means: Means): AsyncGenerator<readonly AnswerEvent[]> {
  const { run, gguf, template, engine } = means;
  const { body, contextWindow, onProgress } = run;
  const { library } = engine;
  refuseUnsupported(body, honoured);
  const prompt = writePrompt({ template, file: gguf.file, body });
  const text = answerGrammar({ body, template, thinking: prompt.thinking });
  const grammar = text === undefined ? undefined : await createGrammar(text, means);
  const signal = AbortSignal.any([run.signal, gguf.closing]);
  using held = await gguf.use(() => onProgress("loading"));
  signal.throwIfAborted();
  const { model } = held.loaded;
  yield* say({
    loaded: held.loaded,
    prompt: promptTokens(prompt, model),
    param: "messages",
    reader: new GgufAnswer({ template, body, thinking: prompt.thinking }),
    sampling: (said) => ({
      ...samplingOf({ body, file: gguf.file, library, model, said }),
      ...(grammar !== undefined && {
        grammarEvaluationState: new library.LlamaGrammarEvaluationState({ model, grammar }),
      }),
    }),
    tokensMax: body.max_tokens,
    contextWindow,
    signal,
    onProgress,
  });
}

async function createGrammar(grammar: string, { engine, run }: Means): Promise<Grammar> {
  try {
    return await engine.llama.createGrammar({ grammar });
  } catch (error) {
    const param = run.body.response_format === undefined ? "tool_choice" : "response_format";
    throw new Fault("unsupported_value", {
      message: `The runtime of this model cannot hold an answer to this '${param}'.`,
      param,
      internal: originOf(error),
    });
  }
}
