import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { thinkingTemplate } from "./templates.ts";
import { callsIn, noEngine, only, saidIn, TinyRuntime } from "./tiny-runtime.ts";

const weather = {
  type: "function" as const,
  function: {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: { city: { type: "string", maxLength: 40 }, days: { type: "integer" } },
      required: ["city"],
    },
  },
};
const clock = { type: "function" as const, function: { name: "get_time" } };

const first = `{"name": "get_weather", "arguments": {"city": "Zürich"}}`;
const second = `{"name": "get_time", "arguments": {}}`;
const scripts = {
  "<|with-tools|>": [
    "<think>",
    "\nI should ",
    "look it up.\n",
    "</think>",
    "\n\n",
    "<tool_call>",
    "\n",
    first,
    "\n</tool_call>",
    "\n<tool_",
    "call>\n",
    second,
    "\n</tool_call>\n",
  ],
  "<|after-tool|>": ["It ", "rains."],
  "<|assistant|>": ["<think>hm</thi", "nk>Just ", "talk."],
  "<|at-once|>": ["At once."],
};

describe.skipIf(noEngine)("a model with thoughts and tools", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    tiny = await TinyRuntime.start({ name: "tiny-tools", template: thinkingTemplate, scripts, contextTokens: 4_096 });
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  test("is known by its template", async () => {
    const [described] = await tiny.runtime.catalogue(new AbortController().signal);
    expect(described).toMatchObject({
      id: "tiny-tools",
      capabilities: { completion: true, tools: true, thinking: true, vision: false, embedding: false },
      contextTokens: 4_096,
    });
  });

  test("tells its thoughts apart from its answer", async () => {
    const events = await tiny.events();
    expect([saidIn(events, "reasoning"), saidIn(events)]).toEqual(["hm", "Just talk."]);
    expect(only(events, "usage")?.reasoningTokens).toBeGreaterThan(0);
  });

  test("answers at once where no thoughts are wanted", async () => {
    const events = await tiny.events({ reasoning_effort: "none" });
    expect([saidIn(events, "reasoning"), saidIn(events)]).toEqual(["", "At once."]);
  });

  test("calls one tool after the other, each with its arguments as JSON", async () => {
    const events = await tiny.events({ tools: [weather, clock] });
    expect(saidIn(events, "reasoning")).toBe("I should look it up.");
    expect(saidIn(events)).toBe("");
    expect(callsIn(events)).toEqual([
      { name: "get_weather", arguments: `{"city":"Zürich"}` },
      { name: "get_time", arguments: "{}" },
    ]);
  });

  test("calls one tool only where that is wanted", async () => {
    const events = await tiny.events({ tools: [weather, clock], parallel_tool_calls: false });
    expect(callsIn(events).map(({ name }) => name)).toEqual(["get_weather"]);
  });

  test("is offered no tools with tool_choice none", async () => {
    const events = await tiny.events({ tools: [weather], tool_choice: "none" });
    expect([callsIn(events), saidIn(events)]).toEqual([[], "Just talk."]);
  });

  test("reads what a tool has said", async () => {
    const called = { id: "call_1", type: "function" as const, function: { name: "get_time", arguments: "{}" } };
    const messages = [
      { role: "user" as const, content: "What time is it?" },
      { role: "assistant" as const, tool_calls: [called] },
      { role: "tool" as const, tool_call_id: "call_1", content: "noon" },
    ];
    expect(saidIn(await tiny.events({ messages, tools: [clock] }))).toBe("It rains.");
  });

  test("a call that the limit cuts off is not passed off as one", async () => {
    const events = await tiny.events({ tools: [weather], max_tokens: 7 });
    expect([callsIn(events), only(events, "finish")?.reason]).toEqual([[], "length"]);
  });

  test("calls the tool that is named, whatever it would rather say", async () => {
    const events = await tiny.events({
      tools: [weather, clock],
      tool_choice: { type: "function", function: { name: "get_time" } },
      reasoning_effort: "none",
      max_tokens: 400,
    });
    expect(callsIn(events).map(({ name }) => name)).toEqual(["get_time"]);
  });
});

describe.skipIf(noEngine)("a call that is none", () => {
  test("is a fault, and not an answer", async () => {
    const broken = ["<tool_call>", `{"name": "get_weather", "arguments": "no object"}`, "</tool_call>"];
    const chain = { "<|with-tools|>": broken, "<|after-tool|>": [], "<|assistant|>": [], "<|at-once|>": [] };
    await using tiny = await TinyRuntime.start({ name: "broken", template: thinkingTemplate, scripts: chain });
    await expect(tiny.events({ tools: [weather] })).rejects.toMatchObject({ code: "upstream_error" });
  });
});

describe.skipIf(noEngine)("a model that rolls dice", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    const marks = { "<|with-tools|>": [], "<|after-tool|>": [], "<|assistant|>": [], "<|at-once|>": [] };
    const noisy = { name: "noise", template: thinkingTemplate, scripts: marks, noise: 3, contextTokens: 4_096 };
    tiny = await TinyRuntime.start(noisy);
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  test.each([1, 2, 3])("must call a tool where one is required, with arguments that fit (seed %i)", async (seed) => {
    const dice = { temperature: 1, seed, max_tokens: 2_000, reasoning_effort: "none" as const };
    const parameters = {
      type: "object",
      properties: { unit: { enum: ["celsius", "kelvin"] }, exact: { type: "boolean" } },
      required: ["unit", "exact"],
      additionalProperties: false,
    };
    const tools = [{ type: "function" as const, function: { name: "get_heat", parameters } }];
    const asked = { ...dice, tools, tool_choice: "required" as const, parallel_tool_calls: false };
    const [call] = callsIn(await tiny.events(asked));
    expect(call?.name).toBe("get_heat");
    expect(JSON.parse(call?.arguments ?? "")).toEqual({
      unit: expect.stringMatching(/^(celsius|kelvin)$/),
      exact: expect.any(Boolean),
    });
  });

  test.each([1, 2, 3])("answers with JSON that fits a schema (seed %i)", async (seed) => {
    const schema = {
      type: "object",
      properties: {
        kind: { const: "point" },
        at: { $ref: "#/$defs/pair" },
        note: { type: ["string", "null"], maxLength: 5 },
      },
      required: ["kind", "at"],
      additionalProperties: false,
      $defs: { pair: { type: "array", items: { enum: [0, 1] }, minItems: 2, maxItems: 2 } },
    };
    const format = { type: "json_schema" as const, json_schema: { name: "point", schema } };
    const dice = { temperature: 1, seed, max_tokens: 2_000, reasoning_effort: "none" as const };
    const events = await tiny.events({ ...dice, response_format: format });
    expect(only(events, "finish")?.reason).toBe("stop");
    const answer: { at: number[] } = JSON.parse(saidIn(events));
    expect(answer).toMatchObject({ kind: "point", at: [expect.any(Number), expect.any(Number)] });
    expect(Object.keys(answer).every((key) => ["kind", "at", "note"].includes(key))).toBe(true);
  });

  test("refuses a schema that it cannot be held to", async () => {
    const schema = { type: "object", properties: { code: { type: "string", pattern: "^[A-Z]+$" } } };
    const format = { type: "json_schema" as const, json_schema: { name: "code", schema } };
    await expect(tiny.events({ response_format: format })).rejects.toMatchObject({
      code: "unsupported_value",
      param: "response_format.json_schema.schema",
      message: expect.stringContaining("pattern"),
    });
  });
});
