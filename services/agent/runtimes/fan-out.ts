import type { AnswerEvent, Usage } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { CompleteBody } from "#shared/protocol/job-bodies.ts";
import type { ChatRun, CompleteRun, EmbedRun, EmitEvents, Runtime } from "./runtime.ts";

/** One of several answers to a request. */
interface AnswerTurn<Body> {
  readonly body: Body;
  /** True if this turn answers the same prompt as the turn before it. */
  readonly again: boolean;
  /** Text that the answer begins with, whatever the model answers. */
  readonly echo: string;
}

/**
 * Requests `n` answers from a runtime that gives one answer at a time. The answers run one after the other, so that a
 * job takes only its one slot. With a seed from the client, each answer gets its own seed; otherwise all would be the
 * same.
 */
export function fanOut(chat: Runtime["chat"], run: ChatRun, emit: EmitEvents): Promise<void> {
  const { n = 1, ...body } = run.body;
  if (n === 1) return chat({ ...run, body }, emit);
  return runInTurn(answersTo(body, n), run, (each, emitEach) => chat({ ...run, body: each }, emitEach), emit);
}

/** Runs all texts and answers of a request for completions on a runtime that continues one text at a time. */
export function completeEach(
  complete: NonNullable<Runtime["complete"]>,
  run: Omit<CompleteRun, "body"> & { readonly body: CompleteBody },
  emit: EmitEvents,
): Promise<void> {
  const { prompts, n = 1, echo = false, ...body } = run.body;
  const turns = prompts.flatMap((prompt) => answersTo({ ...body, prompt }, n, echo ? prompt : ""));
  return runInTurn(turns, run, (each, emitEach) => complete({ ...run, body: each }, emitEach), emit);
}

function answersTo<Body extends { readonly seed?: number | undefined }>(
  body: Body,
  wanted: number,
  echo = "",
): AnswerTurn<Body>[] {
  return Array.from({ length: wanted }, (_, index) => ({
    body: body.seed === undefined ? body : { ...body, seed: body.seed + index },
    again: index > 0,
    echo,
  }));
}

async function runInTurn<Body>(
  turns: readonly AnswerTurn<Body>[],
  { signal, onProgress }: Pick<ChatRun, "signal" | "onProgress">,
  ask: (body: Body, emit: EmitEvents) => Promise<void>,
  emit: EmitEvents,
): Promise<void> {
  let sum: Usage | undefined;
  for (const [choice, { body, again, echo }] of turns.entries()) {
    signal.throwIfAborted();
    onProgress("prefill");
    let usage: Usage | undefined;
    let begun = echo === "";
    let finished = false;
    await ask(body, (events) => {
      const ofThisChoice: AnswerEvent[] = begun ? [] : [{ kind: "text", choice, text: echo }];
      begun = true;
      for (const event of events) {
        if (event.kind === "finish") finished = true;
        if (event.kind === "usage") usage = event;
        else if (event.kind === "embedding" || event.kind === "scores" || event.kind === "audio")
          ofThisChoice.push(event);
        else ofThisChoice.push({ ...event, choice });
      }
      return emit(ofThisChoice);
    });
    // Without this check, an answer without any event would not be missed at the end.
    if (!finished) {
      throw new Fault("upstream_error", {
        message: "The model's answer broke off before its end.",
        internal: `the runtime ended answer ${choice} without a finish reason`,
      });
    }
    if (usage !== undefined) sum = added(sum, usage, again);
  }
  if (sum !== undefined) await emit([{ kind: "usage", ...sum }]);
}

/**
 * Adds the usage of one answer. A prompt counts once, however often the runtime read it. OpenAI counts the same way, so
 * a price by tokens does not depend on the runtime.
 */
function added(sum: Usage | undefined, usage: Usage, again: boolean): Usage {
  if (sum === undefined) return usage;
  const prompt = again ? nothingRead : usage;
  return {
    promptTokens: sum.promptTokens + prompt.promptTokens,
    completionTokens: sum.completionTokens + usage.completionTokens,
    cachedTokens: total(sum.cachedTokens, prompt.cachedTokens),
    reasoningTokens: total(sum.reasoningTokens, usage.reasoningTokens),
  };
}

const nothingRead: Pick<Usage, "promptTokens" | "cachedTokens"> = { promptTokens: 0 };

function total(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined && other === undefined ? undefined : (one ?? 0) + (other ?? 0);
}

/** The most texts in one request to a runtime. Their vectors are well within the size limit of one answer. */
export const textsAtOnce = 64;

/**
 * Embeds any number of texts, one batch after the other, and emits one `embedding` event for each text. Checks that each text has its vector, of the requested length:
 * a runtime without support for `dimensions` ignores it.
 */
export async function embedInBatches(
  embed: NonNullable<Runtime["embed"]>,
  run: EmbedRun,
  emit: EmitEvents,
): Promise<void> {
  const { input, dimensions } = run.body;
  let promptTokens = 0;
  for (let from = 0; from < input.length; from += textsAtOnce) {
    run.signal.throwIfAborted();
    run.onProgress("prefill");
    const texts = input.slice(from, from + textsAtOnce);
    const embedded = await embed({ ...run, body: { ...run.body, input: texts } });
    promptTokens += embedded.promptTokens;
    const { vectors } = embedded;
    if (vectors.length !== texts.length) {
      const message = "The runtime did not answer with one vector for each text.";
      throw new Fault("upstream_error", { message, internal: `${vectors.length} vectors for ${texts.length} texts` });
    }
    const wrong = vectors.find((vector) => dimensions !== undefined && vector.length !== dimensions);
    if (wrong !== undefined) {
      const message = `The runtime of this model does not support 'dimensions': its vectors have ${wrong.length} numbers.`;
      throw new Fault("unsupported_parameter", { message, param: "dimensions" });
    }
    await emit(vectors.map((vector, at): AnswerEvent => ({ kind: "embedding", index: from + at, vector })));
  }
  await emit([
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens, completionTokens: 0 },
  ]);
}
