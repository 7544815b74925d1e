import type { AnswerEvent, Usage } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { ChatRun } from "./runtime.ts";

type Chat = (run: ChatRun) => AsyncIterable<readonly AnswerEvent[]>;

/**
 * Asks a runtime that gives one answer at a time for as many as the request wants (`n`), one after the other, so that a
 * job never takes more than the one slot that it has. Where the client gave a seed each answer has its own, or all would
 * be the same.
 */
export function fanOut(chat: Chat, run: ChatRun): AsyncIterable<readonly AnswerEvent[]> {
  const { n = 1, ...body } = run.body;
  return n === 1 ? chat({ ...run, body }) : inTurn(chat, { ...run, body }, n);
}

async function* inTurn(chat: Chat, run: ChatRun, wanted: number): AsyncGenerator<readonly AnswerEvent[]> {
  const { seed } = run.body;
  let sum: Usage | undefined;
  for (let choice = 0; choice < wanted; choice += 1) {
    run.signal.throwIfAborted();
    run.onProgress("prefill");
    const body = seed === undefined ? run.body : { ...run.body, seed: seed + choice };
    let told: Usage | undefined;
    let finished = false;
    for await (const events of chat({ ...run, body })) {
      const said: AnswerEvent[] = [];
      for (const event of events) {
        if (event.kind === "finish") finished = true;
        if (event.kind === "usage") told = event;
        else said.push(ofChoice(event, choice));
      }
      yield said;
    }
    // An answer of which nothing came at all would not be missed at the end.
    if (!finished) throw brokenOff(choice);
    if (told !== undefined) sum = added(sum, told);
  }
  if (sum !== undefined) yield [{ kind: "usage", ...sum }];
}

function ofChoice(event: Exclude<AnswerEvent, { kind: "usage" }>, choice: number): AnswerEvent {
  return event.kind === "embedding" ? event : { ...event, choice };
}

/**
 * The prompt counts once, however often it was read: OpenAI counts it so, and whoever pays by tokens pays the same
 * whichever runtime answers.
 */
function added(sum: Usage | undefined, usage: Usage): Usage {
  const { promptTokens, cachedTokens } = sum ?? usage;
  const reasoning = [sum?.reasoningTokens, usage.reasoningTokens].filter((tokens) => tokens !== undefined);
  return {
    promptTokens,
    completionTokens: (sum?.completionTokens ?? 0) + usage.completionTokens,
    ...(cachedTokens !== undefined && { cachedTokens }),
    ...(reasoning.length > 0 && { reasoningTokens: reasoning.reduce((total, tokens) => total + tokens) }),
  };
}

function brokenOff(choice: number): Fault {
  return new Fault("upstream_error", {
    message: "The model's answer broke off before its end.",
    internal: `the runtime ended answer ${choice} without a finish reason`,
  });
}
