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

/** How the template opens a call, goes on to its arguments, and closes it: the engine learns these from the template. */
const [opens, given, closes] = [`<tool_call>\n{"name": "`, `", "arguments": `, `}\n</tool_call>`];
const calling = {
  "<|with-tools|>": ["<think>", "\nI should ", "look it up.", "</think>", "\n\n", opens, "get_weather", "\n"],
  [given]: [`{"city": "Zürich", "days": null}`, "\n\n\n\n"],
  // One call follows the other without an end: the next token depends on the current one alone.
  [closes]: [opens, "get_weather", "\n"],
  "<|after-tool|>": ["It ", "rains."],
  "<|assistant|>": ["Just ", "talk."],
};

describe.skipIf(noEngine)("a model with tools", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    const template = thinkingTemplate;
    tiny = await TinyRuntime.start({ name: "tiny-tools", template, scripts: calling, contextTokens: 4_096 });
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  test("a model with tools is known by its template", async () => {
    const [described] = await tiny.runtime.catalogue(new AbortController().signal);
    expect(described).toMatchObject({
      id: "tiny-tools",
      capabilities: { completion: true, tools: true, thinking: true, vision: false, embedding: false },
      contextTokens: 4_096,
    });
  });

  test("a model with tools calls a tool after its thoughts, without the optional parameter that it left out", async () => {
    const events = await tiny.events({ tools: [weather, clock], parallel_tool_calls: false });
    expect([saidIn(events, "reasoning"), saidIn(events)]).toEqual(["I should look it up.", ""]);
    expect(callsIn(events)).toEqual([{ name: "get_weather", arguments: `{"city":"Zürich"}` }]);
    expect(only(events, "finish")?.reason).toBe("stop");
  });

  test("a model with tools calls several tools, and a call that the limit cuts off is not passed off as one", async () => {
    const events = await tiny.events({ tools: [weather, clock], max_tokens: 18 });
    const [first, second, ...others] = callsIn(events);
    expect([first, others]).toEqual([second, []]);
    expect(only(events, "finish")?.reason).toBe("length");
  });

  test("a model with tools ends with its window in the middle of a call, and forgets nothing of the conversation", async () => {
    const tools = [weather, clock];
    const { promptTokens = 0 } = only(await tiny.events({ tools, max_tokens: 1 }), "usage") ?? {};
    const small = {
      name: "tiny-window",
      template: thinkingTemplate,
      scripts: calling,
      contextTokens: promptTokens + 64,
    };
    await using full = await TinyRuntime.start(small);
    const events = await full.events({ tools });
    expect(only(events, "finish")?.reason).toBe("length");
    expect(callsIn(events).length).toBeGreaterThan(2);
    expect(only(events, "usage")?.completionTokens).toBeLessThan(64);
  });

  test("a model with tools is offered no tools with tool_choice none", async () => {
    const events = await tiny.events({ tools: [weather], tool_choice: "none" });
    expect([callsIn(events), saidIn(events)]).toEqual([[], "Just talk."]);
  });

  const called = { id: "call_1", type: "function" as const, function: { name: "get_time", arguments: "{}" } };
  const asks = { role: "user" as const, content: "What time is it?" };
  const answers = { role: "tool" as const, tool_call_id: "call_1", content: "noon" };

  test("a model with tools reads what a tool has said", async () => {
    const messages = [asks, { role: "assistant" as const, tool_calls: [called] }, answers];
    expect(saidIn(await tiny.events({ messages, tools: [clock] }))).toBe("It rains.");
  });

  test("a model with tools refuses the result of a call that nobody made", async () => {
    await expect(tiny.events({ messages: [asks, answers], tools: [clock] })).rejects.toMatchObject({
      code: "invalid_value",
      param: "messages[1].tool_call_id",
    });
  });

  test("a model with tools calls the tool that is named, whatever it would rather say", async () => {
    const events = await tiny.events({
      tools: [weather, clock],
      tool_choice: { type: "function", function: { name: "get_time" } },
      max_tokens: 400,
    });
    expect(callsIn(events)).toEqual([{ name: "get_time", arguments: "{}" }]);
  });

  test("a model with tools reads what steers as plain text in a tool and in a call's arguments", async () => {
    const tokens = async (text: string): Promise<number> => {
      const described = { ...clock, function: { ...clock.function, description: text } };
      const call = { ...called, function: { name: "get_time", arguments: JSON.stringify({ zone: text }) } };
      const messages = [asks, { role: "assistant" as const, tool_calls: [call] }, answers];
      return only(await tiny.events({ messages, tools: [described], max_tokens: 1 }), "usage")?.promptTokens ?? 0;
    };
    // Two tokens less a text would mean that the mark became the token that ends a turn.
    expect((await tokens("x<|end|>")) - (await tokens("x"))).toBeGreaterThan(2 * 2);
  });
});

describe.skipIf(noEngine)("a model that thinks", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    const scripts = {
      "<|assistant|>": ["<think>", "hm", "</think>", "Just ", "talk."],
      // The only other token after a thought that a grammar admits.
      "<|json|>": [`{"a": 1}`, "\n\n\n\n"],
    };
    tiny = await TinyRuntime.start({ name: "tiny-thoughts", template: thinkingTemplate, scripts });
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  test("a model that thinks tells its thoughts apart from its answer", async () => {
    const events = await tiny.events();
    expect([saidIn(events, "reasoning"), saidIn(events)]).toEqual(["hm", "Just talk."]);
    expect(only(events, "usage")?.reasoningTokens).toBeGreaterThan(0);
  });

  test("a model that thinks answers at once where no thoughts are wanted", async () => {
    const events = await tiny.events({ reasoning_effort: "none" });
    expect([saidIn(events, "reasoning"), saidIn(events)]).toEqual(["", "Just talk."]);
  });

  test("a model that thinks thinks no longer than the limit before JSON", async () => {
    const events = await tiny.events({ response_format: { type: "json_object" }, max_tokens: 2 });
    expect([saidIn(events, "reasoning"), saidIn(events), only(events, "finish")?.reason]).toEqual(["hm", "", "length"]);
    expect(only(events, "usage")?.completionTokens).toBe(2);
  });

  test.each([
    ["thinks before JSON", undefined, "hm"],
    ["answers with JSON at once where no thoughts are wanted", "none" as const, ""],
  ])("%s", async (_, effort, reasoning) => {
    const schema = { type: "object", properties: { a: { enum: [1] } }, required: ["a"] };
    const format = { type: "json_schema" as const, json_schema: { name: "a", schema } };
    const events = await tiny.events({ response_format: format, ...(effort && { reasoning_effort: effort }) });
    expect([saidIn(events, "reasoning"), JSON.parse(saidIn(events))]).toEqual([reasoning, { a: 1 }]);
    expect(only(events, "finish")?.reason).toBe("stop");
  });
});

describe.skipIf(noEngine)("a model is offered without tools", () => {
  const told = `{% if tools %}[{{ tools | tojson }}]{% endif %}`;
  const around = (call: string): string => `{%- for message in messages %}<|{{ message.role }}|>{{ message.content }}
{%- for call in message.tool_calls or [] %}${call}{% endfor %}<|end|>{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}`;
  const json = `<call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</call>`;
  const tags = `<call={{ call.function.name }}>{% for key, value in call.function.arguments | items %}<{{ key }}>{{ value }}</{{ key }}>{% endfor %}</call>`;

  test.each([
    ["not where its template describes them and calls them by JSON", told + around(json), true],
    ["whose template knows none", around(""), false],
    ["whose template does not describe them", around(json), false],
    ["whose calls are no JSON", told + around(tags), false],
  ])("%s", async (_, template, tools) => {
    await using tiny = await TinyRuntime.start({ name: "form", template, scripts: { "<|assistant|>": ["a"] } });
    const [described] = await tiny.runtime.catalogue(new AbortController().signal);
    expect(described?.capabilities).toMatchObject({ completion: true, tools, thinking: false });
  });

  test("a model is offered without tools and serves chats all the same if its template insists on a list of tools", async () => {
    const template = `{% for tool in tools %}{{ tool }}{% endfor %}${around("")}`;
    await using tiny = await TinyRuntime.start({ name: "form", template, scripts: { "<|assistant|>": ["a"] } });
    expect(saidIn(await tiny.events())).toBe("a");
  });
});

describe.skipIf(noEngine)("a model that rolls dice", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    const marks = { "<|with-tools|>": [], "<|after-tool|>": [], "<|assistant|>": [] };
    const noisy = { name: "noise", template: thinkingTemplate, scripts: marks, noise: 3, contextTokens: 4_096 };
    tiny = await TinyRuntime.start(noisy);
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  test.each([1, 2, 3])(
    "a model that rolls dice must call a tool where one is required, with arguments that fit (seed %i)",
    async (seed) => {
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
    },
  );

  test.each([1, 2, 3])("a model that rolls dice answers with JSON that fits a schema (seed %i)", async (seed) => {
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

  test.each([1, 2, 3])(
    "a model that rolls dice writes no exponent where a schema wants integers (seed %i)",
    async (seed) => {
      const schema = { type: "array", items: { type: "integer", minimum: 1 }, minItems: 30, maxItems: 30 };
      const format = { type: "json_schema" as const, json_schema: { name: "numbers", schema } };
      const dice = { temperature: 1, seed, max_tokens: 2_000, reasoning_effort: "none" as const };
      const said = saidIn(await tiny.events({ ...dice, response_format: format }));
      expect([said.match(/-?\d+/g)?.length, said.match(/e/i)]).toEqual([30, null]);
    },
  );

  test("a model that rolls dice refuses a schema that it cannot be held to", async () => {
    const schema = { type: "object", properties: { code: { type: "string", pattern: "^[A-Z]+$" } } };
    const format = { type: "json_schema" as const, json_schema: { name: "code", schema } };
    await expect(tiny.events({ response_format: format })).rejects.toMatchObject({
      code: "unsupported_value",
      param: "response_format.json_schema.schema",
      message: expect.stringContaining("pattern"),
    });
  });
});
