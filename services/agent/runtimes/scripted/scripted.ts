import { setImmediate as nextTurn } from "node:timers/promises";
import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import { honouring, refuseUnsupported } from "../refuse-unsupported.ts";
import { honouringInTexts, refuseUnsupportedText } from "../refuse-unsupported-text.ts";
import type { ChatRun, CompleteRun, EmbedRun, Embeddings, EmitEvents, Runtime } from "../runtime.ts";
import { countWords } from "./count-words.ts";
import { planAnswer, planContinuation, type ScriptedAnswer } from "./scripted-answer.ts";
import { scriptedVector } from "./scripted-embedding.ts";
import { chooseScriptedModels, scriptedModelIds, type ScriptedModel } from "./scripted-models.ts";
import { StopCutter } from "../stop-cutter.ts";

export interface ScriptedOptions {
  readonly clock: Clock;
  /** The demonstration models to offer; all of them by default. */
  readonly models?: readonly string[] | undefined;
  readonly slots?: number | undefined;
  /** Ends the process, for `exit_at`. */
  readonly exit?: ((code: number) => void) | undefined;
}

/** The slots of the demonstration. It costs next to nothing, so load tests measure the path to it. */
const scriptedSlots = 1_024;

/** The most tokens between two turns of the event loop when there is no delay. */
const batchTokensMax = 64;

const honoured = honouring();
const honouredInTexts = honouringInTexts();

/**
 * A deterministic runtime that needs no model. `trunkline up` shows it without a model, tests use it, and it is the far
 * end of load tests. It answers with a short friendly text. A script line at the beginning of the last user message, or
 * of the text to continue, replaces that text.
 */
export function scriptedRuntime(options: ScriptedOptions): Runtime {
  const models = chooseScriptedModels(options.models ?? scriptedModelIds);
  const exit = options.exit ?? ((code: number) => process.exit(code));

  function find(id: string): ScriptedModel {
    const model = models.find((each) => each.id === id);
    if (model !== undefined) return model;
    throw new Fault("model_not_found", { message: `The model '${id}' does not exist.`, param: "model" });
  }

  async function chat(run: ChatRun, emit: EmitEvents): Promise<void> {
    const model = find(run.model);
    refuseUnsupported(run.body, honoured);
    await perform({ answer: planAnswer({ model, body: run.body }), run, clock: options.clock, exit }, emit);
  }

  async function complete(run: CompleteRun, emit: EmitEvents): Promise<void> {
    find(run.model);
    refuseUnsupportedText(run.body, honouredInTexts);
    await perform({ answer: planContinuation(run.body), run, clock: options.clock, exit }, emit);
  }

  async function embed({ body, signal }: EmbedRun): Promise<Embeddings> {
    const vectors: number[][] = [];
    let promptTokens = 0;
    for (const text of body.input) {
      await nextTurn();
      signal.throwIfAborted();
      promptTokens += await countWords([text]);
      vectors.push(scriptedVector(text, body.dimensions));
    }
    return { vectors, promptTokens };
  }

  return {
    name: "scripted",
    slots: options.slots ?? scriptedSlots,
    async catalogue(signal) {
      signal.throwIfAborted();
      return models;
    },
    chat,
    complete,
    embed,
  };
}

interface Performance {
  readonly answer: ScriptedAnswer;
  readonly run: ChatRun | CompleteRun;
  readonly clock: Clock;
  readonly exit: (code: number) => void;
}

async function perform({ answer, run, clock, exit }: Performance, emit: EmitEvents): Promise<void> {
  const { signal } = run;
  signal.throwIfAborted();
  const startedMs = clock.now() + answer.firstMs;
  const last = answer.mishap?.position ?? answer.thoughts + answer.textTokens;
  const cutter = new StopCutter(run.body.stop ?? []);
  let said = 0;

  const untilDue = async (): Promise<void> => {
    const waitMs = Math.ceil(startedMs + said * answer.delayMs - clock.now());
    if (waitMs > 0) await sleep(clock, waitMs, signal);
    else await nextTurn();
    signal.throwIfAborted();
  };
  const dueByNow = (): number => {
    if (answer.delayMs === 0) return last;
    return Math.max(said, Math.floor((clock.now() - startedMs) / answer.delayMs)) + 1;
  };

  while (said < last && !cutter.stopped) {
    await untilDue();
    const batch: AnswerEvent[] = [];
    const end = Math.min(last, dueByNow(), said + batchTokensMax);
    for (; said < end && !cutter.stopped; said++) {
      const index = said - answer.thoughts;
      if (index < 0) batch.push({ kind: "reasoning", text: `think-${said} ` });
      else batch.push(...textEvents(cutter.push(answer.token(index))));
    }
    run.onProgress();
    if (batch.length > 0) await emit(batch);
  }

  if (answer.mishap !== undefined && !cutter.stopped) {
    await untilDue();
    await meet(answer.mishap.kind, { signal, exit });
  }

  const promptTokens = await countWords(answer.prompt);
  signal.throwIfAborted();
  const closing = closingEvents(answer, { promptTokens, said, stopped: cutter.stopped });
  await emit([...textEvents(cutter.end()), ...closing]);
}

function textEvents(text: string): AnswerEvent[] {
  return text === "" ? [] : [{ kind: "text", text }];
}

function closingEvents(
  answer: ScriptedAnswer,
  outcome: { promptTokens: number; said: number; stopped: boolean },
): AnswerEvent[] {
  const events: AnswerEvent[] = [];
  if (answer.call !== undefined && !outcome.stopped) {
    events.push({ kind: "tool-call-start", index: 0, name: answer.call.name });
    events.push({ kind: "tool-call-delta", index: 0, arguments: answer.call.arguments });
  }
  events.push({ kind: "finish", reason: outcome.stopped ? "stop" : answer.finish });
  events.push({
    kind: "usage",
    promptTokens: outcome.promptTokens,
    completionTokens: outcome.said,
    ...(answer.thoughts > 0 && { reasoningTokens: answer.thoughts }),
  });
  return events;
}

/** Runs the failure of a script. The answer never continues after it. */
async function meet(
  kind: "fail" | "stall" | "exit",
  world: { signal: AbortSignal; exit: (code: number) => void },
): Promise<never> {
  switch (kind) {
    case "fail":
      throw new Fault("upstream_error", { message: "The runtime failed, as its script line asked." });
    case "exit":
      world.exit(1);
      throw new Fault("upstream_error", { message: "The runtime ended, as its script line asked." });
    case "stall":
      return new Promise((_resolve, reject) => {
        world.signal.addEventListener("abort", () => reject(world.signal.reason), { once: true });
      });
  }
}
