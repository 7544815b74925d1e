import { expect, test } from "vitest";
import { systemClock } from "#shared/process/clock.ts";
import { scriptedRuntime } from "../../../services/agent/runtimes/scripted/scripted.ts";
import { chatOn, type ChatWish, eventsOf, textOf } from "../../harness/ask-runtime.ts";

const runtime = scriptedRuntime({ clock: systemClock });

function goOn(says: string, begun: string, fields: Partial<ChatWish> = {}) {
  const messages = [
    { role: "user" as const, content: says },
    { role: "assistant" as const, content: begun },
  ];
  return eventsOf(chatOn(runtime, { model: "scripted", ...fields, messages }));
}

test.each([
  ["a-0 ", "a-1 a-2 ", 2],
  ["a-0 a-", "1 a-2 ", 2],
  ["a-0 a-1 a-2", " ", 1],
  ["a-0 a-1 a-2 ", "", 0],
])("the demonstration goes on from %o with %o alone, and counts only that", async (begun, rest, completionTokens) => {
  const events = await goOn("/script tokens=3 nonce=a think=4", begun);
  expect(textOf(events)).toBe(rest);
  expect(events.map(({ kind }) => kind)).not.toContain("reasoning");
  const promptTokens = 4 + begun.trim().split(" ").length;
  expect(events.slice(-2)).toEqual([
    { kind: "finish", reason: "stop", stop: undefined },
    { kind: "usage", promptTokens, completionTokens },
  ]);
});

test("the demonstration goes on with its greeting", async () => {
  const whole = textOf(await eventsOf(chatOn(runtime, { model: "scripted" })));
  for (const at of [1, 40, whole.length - 1]) {
    expect(textOf(await goOn("Hello", whole.slice(0, at)))).toBe(whole.slice(at));
  }
});

test.each(["b-0 ", "a-0 a-1 a-2 a-3 "])(
  "the demonstration answers anew after %o, which its answer does not begin with",
  async (begun) => {
    expect(textOf(await goOn("/script tokens=3 nonce=a", begun))).toBe("a-0 a-1 a-2 ");
  },
);

test("the demonstration ends at the limit for the rest", async () => {
  const events = await goOn("/script tokens=9 nonce=a", "a-0 a-", { max_tokens: 2 });
  expect(textOf(events)).toBe("1 a-2 ");
  expect(events.at(-2)).toMatchObject({ kind: "finish", reason: "length" });
});

test("the demonstration calls its tool after the rest", async () => {
  const tools = [{ type: "function" as const, function: { name: "weather" } }];
  const events = await goOn("/script tokens=2 nonce=a tool=weather", "a-0 ", { tools });
  expect(textOf(events)).toBe("a-1 ");
  expect(events).toContainEqual({ kind: "tool-call-start", index: 0, name: "weather" });
});

test("the demonstration has mishaps only behind the beginning", async () => {
  expect(textOf(await goOn("/script tokens=3 nonce=a fail_at=1", "a-0 "))).toBe("a-1 a-2 ");
  expect(textOf(await goOn("/script tokens=3 nonce=a fail_at=1", "a-0 a-"))).toBe("1 a-2 ");
  await expect(goOn("/script tokens=3 nonce=a fail_at=2", "a-0 ")).rejects.toMatchObject({ code: "upstream_error" });
});

test("the demonstration goes on without the delays of the beginning", async () => {
  const events = await goOn("/script tokens=3 nonce=a first_ms=60000 delay_ms=60000", "a-0 a-1 ");
  expect(textOf(events)).toBe("a-2 ");
});
