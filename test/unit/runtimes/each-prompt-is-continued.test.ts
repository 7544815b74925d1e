import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { CompleteBody, TextToContinue } from "#shared/protocol/job-bodies.ts";
import { completeEach } from "../../../services/agent/runtimes/fan-out.ts";
import type { CompleteRun, EmitEvents } from "../../../services/agent/runtimes/runtime.ts";
import { emittedBy } from "../../harness/ask-runtime.ts";

const stop: AnswerEvent = { kind: "finish", reason: "stop" };

/** Asks a runtime that answers each prompt with itself in capitals, and counts its words. */
function ask(body: CompleteBody) {
  const asked: TextToContinue[] = [];
  async function complete(run: CompleteRun, emit: EmitEvents): Promise<void> {
    asked.push(run.body);
    const { prompt } = run.body;
    await emit([{ kind: "text", text: prompt.toUpperCase() }]);
    await emit([stop, { kind: "usage", promptTokens: prompt.split(" ").length, completionTokens: 1, cachedTokens: 1 }]);
  }
  const run = {
    model: "llama3",
    capabilities: { completion: true, vision: false, embedding: false, tools: false, thinking: false },
    contextWindow: 4_096,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    body,
  };
  return { answer: emittedBy((emit) => completeEach(complete, run, emit)), asked };
}

test("a request to continue texts is one request to the runtime for each prompt and each answer, and nothing else of it is lost", async () => {
  const { answer, asked } = ask({ prompts: ["a b", "c"], n: 2, max_tokens: 3, stop: ["x"], suffix: "end" });
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
  const { answer, asked } = ask({ prompts: ["a", ""], echo: true });
  const texts = (await answer).filter(({ kind }) => kind === "text");
  expect(texts).toEqual([
    { kind: "text", choice: 0, text: "a" },
    { kind: "text", choice: 0, text: "A" },
    { kind: "text", choice: 1, text: "" },
  ]);
  expect(asked).toEqual([{ prompt: "a" }, { prompt: "" }]);
});

test("a request to continue texts with a seed has another for each answer to the same prompt, and the same for each prompt", async () => {
  const { answer, asked } = ask({ prompts: ["a", "b"], n: 2, seed: 7 });
  await answer;
  expect(asked.map(({ seed }) => seed)).toEqual([7, 8, 7, 8]);
});
