import type { AnswerEvent, Usage } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { CompleteBody } from "#shared/protocol/complete-body.ts";
import type { Answering } from "./answering.ts";
import type { ChatRun, CompleteRun } from "./runtime.ts";

/** One of several answers to a request. */
interface Turn {
  readonly ask: () => Answering;
  /** True if this turn answers the same prompt as the turn before it. */
  readonly again: boolean;
  /** Text that the answer begins with, whatever the model answers. */
  readonly echo?: string;
}

/**
 * Requests `n` answers from a runtime that gives one answer at a time. The answers run one after the other, so that a
 * job takes only its one slot. With a seed from the client, each answer gets its own seed; otherwise all would be the
 * same.
 */
export function fanOut(chat: (run: ChatRun) => Answering, run: ChatRun): Answering {
  if (run.body.n === undefined) return chat(run);
  const { n, ...body } = run.body;
  if (n === 1) return chat({ ...run, body });
  return inTurn(
    answersTo(body, n, (each) => chat({ ...run, body: each })),
    run,
  );
}

/** Runs all texts and answers of a request for completions on a runtime that continues one text at a time. */
export function completeEach(
  complete: (run: CompleteRun) => Answering,
  run: Omit<CompleteRun, "body"> & { readonly body: CompleteBody },
): Answering {
  const { prompts, n = 1, echo = false, ...body } = run.body;
  const turns = prompts.flatMap((prompt) =>
    answersTo({ ...body, prompt }, n, (each) => complete({ ...run, body: each })).map((turn) =>
      echo ? { ...turn, echo: prompt } : turn,
    ),
  );
  return inTurn(turns, run);
}

function answersTo<Body extends { readonly seed?: number | undefined }>(
  body: Body,
  wanted: number,
  ask: (body: Body) => Answering,
): Turn[] {
  return Array.from({ length: wanted }, (_, place) => ({
    ask: () => ask(body.seed === undefined ? body : { ...body, seed: body.seed + place }),
    again: place > 0,
  }));
}

async function* inTurn(
  turns: readonly Turn[],
  { signal, onProgress }: Pick<ChatRun, "signal" | "onProgress">,
): AsyncGenerator<readonly AnswerEvent[]> {
  let sum: Usage | undefined;
  for (const [choice, { ask, again, echo = "" }] of turns.entries()) {
    signal.throwIfAborted();
    onProgress("prefill");
    let told: Usage | undefined;
    let begun = echo === "";
    let finished = false;
    for await (const events of ask()) {
      const said: AnswerEvent[] = begun ? [] : [{ kind: "text", choice, text: echo }];
      begun = true;
      for (const event of events) {
        if (event.kind === "finish") finished = true;
        if (event.kind === "usage") told = event;
        else said.push(ofChoice(event, choice));
      }
      yield said;
    }
    // Without this check, an answer without any event would not be missed at the end.
    if (!finished) throw brokenOff(choice);
    if (told !== undefined) sum = added(sum, told, again);
  }
  if (sum !== undefined) yield [{ kind: "usage", ...sum }];
}

function ofChoice(event: Exclude<AnswerEvent, { kind: "usage" }>, choice: number): AnswerEvent {
  return event.kind === "embedding" ? event : { ...event, choice };
}

/**
 * Adds the usage of one answer. A prompt counts once, however often the runtime read it. OpenAI counts the same way, so
 * a price by tokens does not depend on the runtime.
 */
function added(sum: Usage | undefined, usage: Usage, again: boolean): Usage {
  if (sum === undefined) return usage;
  const prompt = again ? nothingRead : usage;
  const cachedTokens = total(sum.cachedTokens, prompt.cachedTokens);
  const reasoningTokens = total(sum.reasoningTokens, usage.reasoningTokens);
  return {
    promptTokens: sum.promptTokens + prompt.promptTokens,
    completionTokens: sum.completionTokens + usage.completionTokens,
    ...(cachedTokens !== undefined && { cachedTokens }),
    ...(reasoningTokens !== undefined && { reasoningTokens }),
  };
}

const nothingRead: Pick<Usage, "promptTokens" | "cachedTokens"> = { promptTokens: 0 };

function total(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined && other === undefined ? undefined : (one ?? 0) + (other ?? 0);
}

function brokenOff(choice: number): Fault {
  return new Fault("upstream_error", {
    message: "The model's answer broke off before its end.",
    internal: `the runtime ended answer ${choice} without a finish reason`,
  });
}
