import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import { fanOut } from "../../../services/agent/runtimes/fan-out.ts";
import type { ChatRun, EmitEvents } from "../../../services/agent/runtimes/runtime.ts";
import { eventsOf, batchesOf } from "../../harness/ask-runtime.ts";

const stop: AnswerEvent = { kind: "finish", reason: "stop" };
const used = (completionTokens: number, reasoningTokens?: number): AnswerEvent => ({
  kind: "usage",
  promptTokens: 20,
  completionTokens,
  cachedTokens: 4,
  ...(reasoningTokens !== undefined && { reasoningTokens }),
});

/** A request to a runtime that answers one at a time; its answers are the given ones, in turn. */
function ask(fields: Partial<ChatBody>, answers: readonly (readonly (readonly AnswerEvent[])[])[]) {
  const leaving = new AbortController();
  const asked: ChatBody[] = [];
  const run: ChatRun = {
    model: "llama3",
    capabilities: { completion: true, vision: false, embedding: false, tools: true, thinking: false },
    contextWindow: 4_096,
    body: { messages: [{ role: "user", content: "Hello" }], ...fields },
    signal: leaving.signal,
    onProgress: () => undefined,
  };
  async function chat({ body }: ChatRun, emit: EmitEvents): Promise<void> {
    asked.push(body);
    for (const events of answers[asked.length - 1] ?? []) await emit(events);
  }
  return { answer: batchesOf((emit) => fanOut(chat, run, emit)), asked, leaving };
}

test("a runtime that answers one at a time is asked once for each answer wanted, one after the other, and never for several", async () => {
  const call: AnswerEvent = { kind: "tool-call-start", index: 0, name: "look" };
  const answers = [[[{ kind: "text" as const, text: "a" }], [stop]], [[call, stop]], [[stop]]];
  const { answer, asked } = ask({ n: 3, temperature: 1 }, answers);
  expect(await eventsOf(answer)).toEqual([
    { kind: "text", choice: 0, text: "a" },
    { ...stop, choice: 0 },
    { ...call, choice: 1 },
    { ...stop, choice: 1 },
    { ...stop, choice: 2 },
  ]);
  const messages = [{ role: "user", content: "Hello" }];
  expect(asked).toEqual([0, 1, 2].map(() => ({ messages, temperature: 1 })));
});

test("a runtime that answers one at a time gets another seed for each, so that a seed does not make them all the same", async () => {
  const { answer, asked } = ask({ n: 3, seed: 7 }, [[[stop]], [[stop]], [[stop]]]);
  await eventsOf(answer);
  expect(asked.map(({ seed }) => seed)).toEqual([7, 8, 9]);
});

test("a runtime that answers one at a time is asked as ever when one answer is wanted, and what it says is passed on as it is", async () => {
  for (const fields of [{ seed: 7 }, { seed: 7, n: 1 }]) {
    const events = [{ kind: "text" as const, text: "a" }, stop, used(3)];
    const { answer, asked } = ask(fields, [[events]]);
    expect(await eventsOf(answer)).toEqual(events);
    expect(asked).toEqual([{ messages: [{ role: "user", content: "Hello" }], seed: 7 }]);
  }
});

test("a runtime that answers one at a time is told of in one usage at the end, with the prompt counted once and the last word of each answer", async () => {
  const { answer } = ask({ n: 3 }, [[[used(1), stop, used(3)]], [[stop], [used(5, 2)]], [[stop, used(4, 1)]]]);
  expect((await eventsOf(answer)).filter(({ kind }) => kind === "usage")).toEqual([used(12, 3)]);
});

test("a runtime that answers one at a time tells no usage where its runtime knows none", async () => {
  const { answer } = ask({ n: 2 }, [[[stop]], [[stop]]]);
  expect((await eventsOf(answer)).map(({ kind }) => kind)).toEqual(["finish", "finish"]);
});

test("a runtime that answers one at a time has failed when one of its answers has no finish, also when nothing came of it at all", async () => {
  for (const broken of [[], [[{ kind: "text" as const, text: "b" }]]]) {
    const { answer, asked } = ask({ n: 3 }, [[[stop]], broken, [[stop]]]);
    await expect(eventsOf(answer)).rejects.toMatchObject({ code: "upstream_error" });
    expect(asked).toHaveLength(2);
  }
});

test("a runtime that answers one at a time is not asked again once nobody waits", async () => {
  const { answer, asked, leaving } = ask({ n: 3 }, [[[stop]], [[stop]], [[stop]]]);
  const reason = new Error("nobody waits");
  const reading = (async () => {
    for await (const _ of answer) leaving.abort(reason);
  })();
  await expect(reading).rejects.toBe(reason);
  expect(asked).toHaveLength(1);
});
