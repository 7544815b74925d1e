import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { ChatBody, CompleteBody, TextToContinue } from "#shared/protocol/job-bodies.ts";
import { completeEach, embedInBatches, fanOut, textsAtOnce } from "../../../services/agent/runtimes/fan-out.ts";
import type {
  ChatRun,
  CompleteRun,
  Embeddings,
  EmbedRun,
  EmitEvents,
} from "../../../services/agent/runtimes/runtime.ts";
import { batchesOf, emittedBy, eventsOf } from "../../harness/ask-runtime.ts";

const stop: AnswerEvent = { kind: "finish", reason: "stop" };
const used = (completionTokens: number, reasoningTokens?: number): AnswerEvent => ({
  kind: "usage",
  promptTokens: 20,
  completionTokens,
  cachedTokens: 4,
  ...(reasoningTokens !== undefined && { reasoningTokens }),
});

/** A request to a runtime, but for its body. */
const request = {
  model: "llama3",
  capabilities: { completion: true, vision: false, embedding: true, tools: true, thinking: false },
  contextWindow: 4_096,
  signal: new AbortController().signal,
  onProgress: () => undefined,
};

/** A request to a runtime that answers one at a time; its answers are the given ones, in turn. */
function ask(fields: Partial<ChatBody>, answers: readonly (readonly (readonly AnswerEvent[])[])[]) {
  const leaving = new AbortController();
  const asked: ChatBody[] = [];
  const body: ChatBody = { messages: [{ role: "user", content: "Hello" }], ...fields };
  const run: ChatRun = { ...request, body, signal: leaving.signal };
  async function chat(each: ChatRun, emit: EmitEvents): Promise<void> {
    asked.push(each.body);
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

/** Asks a runtime that answers each prompt with itself in capitals, and counts its words. */
function askTexts(body: CompleteBody) {
  const asked: TextToContinue[] = [];
  async function complete(run: CompleteRun, emit: EmitEvents): Promise<void> {
    asked.push(run.body);
    const { prompt } = run.body;
    await emit([{ kind: "text", text: prompt.toUpperCase() }]);
    await emit([stop, { kind: "usage", promptTokens: prompt.split(" ").length, completionTokens: 1, cachedTokens: 1 }]);
  }
  return { answer: emittedBy((emit) => completeEach(complete, { ...request, body }, emit)), asked };
}

test("a request to continue texts is one request to the runtime for each prompt and each answer, and nothing else of it is lost", async () => {
  const { answer, asked } = askTexts({ prompts: ["a b", "c"], n: 2, max_tokens: 3, stop: ["x"], suffix: "end" });
  expect(await answer).toEqual([
    ...["A B", "A B", "C", "C"].flatMap((text, choice) => [
      { kind: "text", choice, text },
      { ...stop, choice },
    ]),
    { kind: "usage", promptTokens: 3, completionTokens: 4, cachedTokens: 2 },
  ]);
  const same = { max_tokens: 3, stop: ["x"], suffix: "end" };
  expect(asked).toEqual(["a b", "a b", "c", "c"].map((prompt) => ({ ...same, prompt })));
});

test("a request to continue texts with an echo begins each answer with its prompt, once there is an answer", async () => {
  const { answer, asked } = askTexts({ prompts: ["a", ""], echo: true });
  const texts = (await answer).filter(({ kind }) => kind === "text");
  expect(texts).toEqual([
    { kind: "text", choice: 0, text: "a" },
    { kind: "text", choice: 0, text: "A" },
    { kind: "text", choice: 1, text: "" },
  ]);
  expect(asked).toEqual([{ prompt: "a" }, { prompt: "" }]);
});

test("a request to continue texts with a seed has another for each answer to the same prompt, and the same for each prompt", async () => {
  const { answer, asked } = askTexts({ prompts: ["a", "b"], n: 2, seed: 7 });
  await answer;
  expect(asked.map(({ seed }) => seed)).toEqual([7, 8, 7, 8]);
});

function embedding(options: { texts: number; dimensions?: number; drops?: number }) {
  const { texts, dimensions, drops } = options;
  const input = Array.from({ length: texts }, (_, at) => `text ${at}`);
  const asked: (readonly string[])[] = [];
  async function embed({ body }: EmbedRun): Promise<Embeddings> {
    asked.push(body.input);
    const kept = body.input.filter((text) => text !== `text ${drops}`);
    return { vectors: kept.map((text) => [Number(text.slice(5)), 0, 0]), promptTokens: body.input.length };
  }
  const run: EmbedRun = { ...request, body: dimensions === undefined ? { input } : { input, dimensions } };
  return { asked, all: () => emittedBy((emit) => embedInBatches(embed, run, emit)) };
}

test("many texts are given to a runtime in batches, and their vectors come in the order of the texts", async () => {
  const texts = textsAtOnce * 2 + 3;
  const { asked, all } = embedding({ texts });
  const events = await all();
  expect(asked.map(({ length }) => length)).toEqual([textsAtOnce, textsAtOnce, 3]);
  const vectors = events.filter((event) => event.kind === "embedding");
  expect(vectors.map(({ index, vector }) => [index, vector[0]])).toEqual(
    Array.from({ length: texts }, (_, at) => [at, at]),
  );
  expect(events.at(-1)).toEqual({ kind: "usage", promptTokens: texts, completionTokens: 0 });
});

test("a text without a vector is a failure of the runtime", async () => {
  await expect(embedding({ texts: 3, drops: 2 }).all()).rejects.toMatchObject({ code: "upstream_error" });
});

test("vectors of another length than was asked for are refused by the parameter", async () => {
  const refused = { code: "unsupported_parameter", param: "dimensions", message: expect.stringContaining("3 numbers") };
  await expect(embedding({ texts: 1, dimensions: 8 }).all()).rejects.toMatchObject(refused);
  await expect(embedding({ texts: 1, dimensions: 3 }).all()).resolves.toHaveLength(3);
});
