import * as fc from "fast-check";
import { expect, test } from "vitest";
import { chunksOf, dataOf, head, regular, rendered, runtimeEvents } from "./answers.ts";

test("whatever a model says, a chat stream is one line of JSON for each event, and never says [DONE] itself", () => {
  fc.assert(
    fc.property(runtimeEvents, fc.boolean(), (events, includeUsage) => {
      for (const data of dataOf(rendered("chat-stream", regular(events), { includeUsage }))) {
        expect(JSON.parse(data)).toMatchObject({ id: head.id, created: head.createdSeconds, model: head.model });
      }
    }),
    { numRuns: 300 },
  );
});

test("whatever a model says, a chat stream is the same bytes however the events come in batches", () => {
  fc.assert(
    fc.property(runtimeEvents, fc.integer({ min: 2, max: 30 }), (events, batch) => {
      const all = regular(events);
      expect(rendered("chat-stream", all, { batch })).toBe(rendered("chat-stream", all, { batch: 1 }));
      expect(rendered("chat-whole", all, { batch })).toBe(rendered("chat-whole", all, { batch: 1 }));
    }),
  );
});

test("whatever a model says, a chat stream has one chunk with a role, the first, and one with a finish, the last with a choice", async () => {
  await fc.assert(
    fc.asyncProperty(runtimeEvents, fc.boolean(), async (events, includeUsage) => {
      const chunks = await chunksOf(rendered("chat-stream", regular(events), { includeUsage }));
      const choices = chunks.flatMap((chunk) => chunk.choices);
      const told = choices.map(({ delta, finish_reason: finish }) => [delta.role !== undefined, finish !== null]);
      const middle = told.slice(1, -1).map(() => [false, false]);
      expect(told).toEqual([[true, false], ...middle, [false, true]]);
      expect(choices.at(-1)?.delta).toEqual({});
      for (const { delta } of choices.slice(1, -1)) expect(kindsIn(delta)).toHaveLength(1);
    }),
  );
});

test.each(["one\ntwo", "a\r\n\r\ndata: x", "a\u2028b\u2029c\u0085d", "data: [DONE]\n\n", "[DONE]", '"}]}\\', "🌍\0"])(
  "whatever a model says, a chat stream gives %j to OpenAI's client as one piece",
  async (text) => {
    const chunks = await chunksOf(rendered("chat-stream", regular([{ kind: "text", text }, stop])));
    expect(chunks.map(({ choices }) => choices[0]?.delta.content)).toEqual(["", text, undefined]);
  },
);

const stop = { kind: "finish", reason: "stop" } as const;

/** Which kinds of output a delta holds; clients drop one of them when there are two. */
function kindsIn(delta: object): string[] {
  const kinds = [["content"], ["reasoning_content", "reasoning"], ["tool_calls"]];
  return kinds.filter((names) => names.some((name) => name in delta)).map((names) => names.join());
}
