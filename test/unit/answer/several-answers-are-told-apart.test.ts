import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { AnswerAssembly } from "../../../services/agent/jobs/run-job.ts";
import { chunksOf, regular, rendered, runtimeEvents, wholeOf } from "./answers.ts";
import { eventsIn, payloadOf } from "../../harness/answer-payload.ts";

const text = (choice: number, said: string): AnswerEvent => ({ kind: "text", choice, text: said });
const stop = (choice: number): AnswerEvent => ({ kind: "finish", choice, reason: "stop" });
const usage: AnswerEvent = { kind: "usage", promptTokens: 7, completionTokens: 4 };
const call = (choice: number, id: string): AnswerEvent => ({
  kind: "tool-call-start",
  choice,
  index: 0,
  id,
  name: "look",
});

/** The same events as said for one choice of several. */
function ofChoice(events: readonly AnswerEvent[], choice: number): AnswerEvent[] {
  return events.flatMap((event) => (event.kind === "usage" || event.kind === "embedding" ? [] : { ...event, choice }));
}

/** Runs of several choices, mixed with each other as a runtime that answers several at once mixes them. */
const mixed = fc.array(runtimeEvents, { minLength: 1, maxLength: 4 }).chain((runs) => {
  const turns = runs.flatMap((run, choice) => ofChoice(run, choice).map(() => choice));
  return fc.shuffledSubarray(turns, { minLength: turns.length }).map((order) => {
    const waiting = runs.map(ofChoice);
    return { runs, events: order.flatMap((choice) => waiting[choice]?.splice(0, 1) ?? []) };
  });
});

test("several answers to one request say each what it would have said alone, in a stream and whole, however they are mixed", async () => {
  await fc.assert(
    fc.asyncProperty(mixed, async ({ runs, events }) => {
      const all = regular(events);
      const chunks = (await chunksOf(rendered("chat-stream", all))).flatMap(({ choices }) => choices);
      const whole = wholeOf(rendered("chat-whole", all)).choices;
      expect(whole.map(({ index }) => index)).toEqual(runs.map((_, choice) => choice));
      for (const [choice, run] of runs.entries()) {
        const alone = regular(ofChoice(run, 0));
        const expected = wholeOf(rendered("chat-whole", alone)).choices[0];
        // Ids that had to be made, or made anew, are another each time.
        const told = JSON.stringify({ ...whole[choice], index: 0 }).replace(/call_\w+/g, "call");
        expect(told).toBe(JSON.stringify(expected).replace(/call_\w+/g, "call"));
        const own = chunks.filter(({ index }) => index === choice);
        expect(own.map(({ delta }) => delta.content ?? "").join("")).toBe(expected?.message.content ?? "");
        expect(own.map(({ delta }) => delta.role)).toEqual(["assistant", ...Array(own.length - 1).fill(undefined)]);
        expect(own.map((each) => each.finish_reason)).toEqual([
          ...Array(own.length - 1).fill(null),
          expected?.finish_reason,
        ]);
      }
    }),
    { numRuns: 200 },
  );
});

test("several answers to one request finish one after the other in their order, and tell usage once after all of them", () => {
  const said = [text(1, "b"), usage, stop(1), text(0, "a"), stop(0)];
  expect(regular(said).slice(2)).toEqual([{ kind: "finish", reason: "stop" }, stop(1), usage]);
});

test("several answers to one request never share the id of a call, since clients send a call back by its id alone", () => {
  const calls = new AnswerAssembly().push([call(0, "call_1"), call(1, "call_1"), call(2, "call_2")]);
  const ids = calls.map((event) => (event.kind === "tool-call-start" ? event.id : undefined));
  expect(ids).toEqual(["call_1", expect.stringMatching(/^call_\w{10,}$/), "call_2"]);
});

test("several answers to one request number their calls each from its own start, and finish by calls only where there are some", () => {
  const events = regular([call(0, "call_1"), stop(0), text(1, "no"), stop(1)]);
  const finishes = events.filter(({ kind }) => kind === "finish");
  expect(finishes).toEqual([{ kind: "finish", reason: "tool_calls" }, stop(1)]);
  const arguments_: AnswerEvent = { kind: "tool-call-delta", choice: 1, index: 0, arguments: "{}" };
  expect(() => regular([call(0, "call_1"), arguments_])).toThrow(expect.objectContaining({ code: "upstream_error" }));
});

test.each<[string, AnswerEvent[]]>([
  ["one that began has no finish", [text(0, "a"), stop(0), text(1, "b")]],
  ["one before the last is missing", [text(0, "a"), stop(0), text(2, "c"), stop(2)]],
  ["the first is missing", [text(1, "b"), stop(1)]],
])("several answers to one request are a fault of the runtime when %s", (_, events) => {
  expect(() => regular(events)).toThrow(expect.objectContaining({ code: "upstream_error" }));
});

test("several answers to one request keep on the wire which of them each event belongs to", () => {
  const all = regular([text(0, "a"), text(1, "b"), stop(0), stop(1)]);
  expect(eventsIn(payloadOf(...all)).map((event) => ({ choice: 0, ...event }))).toEqual(
    all.map((event) => ({ choice: 0, ...event })),
  );
});
