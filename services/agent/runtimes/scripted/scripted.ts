import packageJson from "../../../../package.json" with { type: "json" };
import { createHash } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Capabilities } from "#shared/protocol/model.ts";
import { type Clock, sleep } from "#shared/process/clock.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { honouring, honouringInTexts, refuseUnsupported, runtimeSampling } from "../refuse-unsupported.ts";
import type { ChatRun, CompleteRun, Embeddings, EmbedRun, EmitEvents, RerankRun, Runtime } from "../runtime.ts";
import { StopCutter } from "../adjust-answer.ts";
import { planAnswer, planContinuation, type ScriptedAnswer, type ScriptedModel } from "./scripted-answer.ts";

interface ScriptedOptions {
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

/** Sampling changes nothing in an answer that is always the same; benchmarks set its length by the last two fields. */
const honoured = honouring(...runtimeSampling);
const honouredInTexts = honouringInTexts(...runtimeSampling);

/**
 * A deterministic runtime that needs no model. `trunkline up` shows it without a model, tests use it, and it is the far
 * end of load tests. It answers with a short friendly text. A script line at the beginning of the last user message, or
 * of the text to continue, replaces that text. A last message of the assistant that its answer begins with is continued.
 */
export function scriptedRuntime(options: ScriptedOptions): Runtime {
  const models = chooseScriptedModels(options.models ?? scriptedModelIds);

  function find(id: string): ScriptedModel {
    const model = models.find((each) => each.id === id);
    if (model !== undefined) return model;
    throw new Fault("model_not_found", { message: `The model '${id}' does not exist.`, param: "model" });
  }

  async function chat(run: ChatRun, emit: EmitEvents): Promise<void> {
    const model = find(run.model);
    refuseUnsupported(run.body, honoured);
    await perform(planAnswer({ model, body: run.body }), run, options, emit);
  }

  async function count({ model, body }: ChatRun): Promise<number> {
    return countWords(planAnswer({ model: find(model), body }).prompt);
  }

  async function complete(run: CompleteRun, emit: EmitEvents): Promise<void> {
    find(run.model);
    refuseUnsupported(run.body, honouredInTexts);
    await perform(planContinuation(run.body), run, options, emit);
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

  /** Scores a document by the share of the query's words that it has. */
  async function rerank({
    body: { query, documents },
  }: RerankRun): Promise<{ scores: number[]; promptTokens: number }> {
    const wanted = wordsOf(query);
    const scores = documents.map((each) => wanted.intersection(wordsOf(each)).size / Math.max(wanted.size, 1));
    return { scores, promptTokens: (await countWords([query])) * documents.length + (await countWords(documents)) };
  }

  return {
    name: "scripted",
    slots: options.slots ?? scriptedSlots,
    version: packageJson.version,
    proofQuestions: ["/script tokens=48", "/script tokens=48 think=2"],
    async catalogue(signal) {
      signal.throwIfAborted();
      return models;
    },
    chat,
    count,
    complete,
    embed,
    rerank,
  };
}

async function perform(
  answer: ScriptedAnswer,
  run: ChatRun | CompleteRun,
  { clock, exit = (code: number) => process.exit(code) }: ScriptedOptions,
  emit: EmitEvents,
): Promise<void> {
  const { signal } = run;
  signal.throwIfAborted();
  const startedMs = clock.now() + answer.firstMs;
  const last = answer.mishap?.position ?? answer.thoughts + answer.textTokens;
  const cutter = new StopCutter(run.body.stop ?? []);
  let sent = 0;

  const untilDue = async (): Promise<void> => {
    const waitMs = Math.ceil(startedMs + sent * answer.delayMs - clock.now());
    if (waitMs > 0) await sleep(clock, waitMs, signal);
    else await nextTurn();
    signal.throwIfAborted();
  };
  const dueByNow = (): number => {
    if (answer.delayMs === 0) return last;
    return Math.max(sent, Math.floor((clock.now() - startedMs) / answer.delayMs)) + 1;
  };

  while (sent < last && !cutter.stopped) {
    await untilDue();
    const batch: AnswerEvent[] = [];
    const end = Math.min(last, dueByNow(), sent + batchTokensMax);
    for (; sent < end && !cutter.stopped; sent++) {
      const index = sent - answer.thoughts;
      if (index < 0) batch.push({ kind: "reasoning", text: `think-${sent} ` });
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
  const closing = closingEvents(answer, { promptTokens, sent, stop: cutter.found });
  await emit([...textEvents(cutter.end()), ...closing]);
}

function textEvents(text: string): AnswerEvent[] {
  return text === "" ? [] : [{ kind: "text", text }];
}

function* closingEvents(
  answer: ScriptedAnswer,
  { promptTokens, sent, stop }: { promptTokens: number; sent: number; stop: string | undefined },
): Generator<AnswerEvent> {
  if (answer.call !== undefined && stop === undefined) {
    yield { kind: "tool-call-start", index: 0, name: answer.call.name };
    yield { kind: "tool-call-delta", index: 0, arguments: answer.call.arguments };
  }
  yield { kind: "finish", reason: stop === undefined ? answer.finish : "stop", stop };
  const reasoning = answer.thoughts > 0 && { reasoningTokens: answer.thoughts };
  yield { kind: "usage", promptTokens, completionTokens: sent, ...reasoning };
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

const nothing: Capabilities = { completion: false, vision: false, embedding: false, tools: false, thinking: false };

/** The creation date of all demonstration models. It is fixed, so that restarts change nothing. */
const createdSeconds = Date.UTC(2026, 0, 1) / 1_000;

function demonstration(id: string, capabilities: Partial<Capabilities>): ScriptedModel {
  return {
    id,
    createdSeconds,
    ownedBy: "trunkline-demonstration",
    capabilities: { ...nothing, ...capabilities },
    contextTokens: 32_768,
    sizeBytes: 0,
    digest: `scripted:${id}`,
    sampling: { temperature: 0, top_p: 1 },
  };
}

const models: readonly ScriptedModel[] = [
  demonstration("scripted", { completion: true, tools: true, thinking: true }),
  demonstration("scripted:plain", { completion: true }),
  demonstration("scripted:vision", { completion: true, vision: true }),
  { ...demonstration("scripted:embed", { embedding: true }), furtherAbilities: ["rerank"] },
  { ...demonstration("scripted:mlx", { completion: true }), onAppleMlx: true },
];

/** The demonstration models, one for each kind of model that clients and routing must tell apart. */
export const scriptedModelIds: readonly string[] = models.map(({ id }) => id);

function chooseScriptedModels(ids: readonly string[]): ScriptedModel[] {
  const unknown = ids.find((id) => !scriptedModelIds.includes(id));
  if (unknown !== undefined) {
    const message = `There is no demonstration model "${unknown}"; choose from ${scriptedModelIds.join(", ")}.`;
    throw new StartFailure(exitCodes.config, message);
  }
  return models.filter(({ id }) => ids.includes(id));
}

export const scriptedDimensions = 64;

/** Returns a vector of length one. It is the same for the same text, and points elsewhere for any other. */
function scriptedVector(text: string, dimensions: number = scriptedDimensions): number[] {
  const bytes = createHash("shake256", { outputLength: dimensions * 2 })
    .update(text)
    .digest();
  const components = Array.from({ length: dimensions }, (_, at) => bytes.readInt16LE(at * 2) + 0.5);
  const length = Math.hypot(...components);
  return components.map((component) => component / length);
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));
}

/** Characters that are counted in one turn of the event loop. Counting these takes some milliseconds. */
const charactersAtOnce = 1024 * 1024;

/** Counts words without splitting the texts: a prompt may have many millions of characters. */
export async function countWords(texts: Iterable<string>): Promise<number> {
  let count = 0;
  let left = charactersAtOnce;
  for (const text of texts) {
    let inWord = false;
    let at = 0;
    while (at < text.length) {
      if (left === 0) {
        await nextTurn();
        left = charactersAtOnce;
      }
      const end = Math.min(text.length, at + left);
      left -= end - at;
      for (; at < end; at++) {
        const isSpace = text.charCodeAt(at) <= 0x20;
        if (!isSpace && !inWord) count++;
        inWord = !isSpace;
      }
    }
  }
  return count;
}
