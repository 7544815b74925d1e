import { describe, expect, test } from "vitest";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { AnswerAssembly } from "../../services/agent/jobs/run-job.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { Silence } from "../../services/agent/runtimes/runtime.ts";
import { eventsOf, textOf, textOn, type TextWish } from "../harness/ask-runtime.ts";
import { until } from "../harness/until.ts";
import { fakesOfTests, kinds, type AnyText, type OnText } from "./runtime-faults/faked-runtimes.ts";

const secret = "/root/models at 10.1.2.3";
/** What each of them cannot honour. */
const unsupported: Readonly<Record<string, readonly string[]>> = {
  ollama: ["suffix", "logit_bias"],
  vllm: [],
  "llama-server": ["suffix"],
  "lm-studio": ["suffix", "logprobs"],
  "mlx-lm": ["suffix", "logprobs", "logit_bias"],
  openai: ["suffix"],
};
const wishes: Readonly<Record<string, Partial<TextWish>>> = {
  suffix: { suffix: "the end" },
  logprobs: { logprobs: 1 },
  logit_bias: { logit_bias: { "5": -100 } },
};
const failing = kinds.flatMap((kind) => (unsupported[kind] ?? []).map((param) => [kind, param] as const));
const telling = kinds.filter((kind) => !unsupported[kind]?.includes("logprobs"));

const fakeOf = fakesOfTests();

const goesOn: OnText = (text) => {
  for (const word of [" there", " was", " a king."]) text.say(word);
  text.done();
};

function answer(kind: string, wish: Partial<TextWish> = {}, options: Parameters<typeof textOn>[2] = {}) {
  return eventsOf(textOn(fakeOf(kind).runtime, { model: "m", ...wish }, options));
}

function played(kind: string, onText: OnText, wish: Partial<TextWish> = {}): Promise<AnswerEvent[]> {
  fakeOf(kind).playText(onText);
  return answer(kind, wish);
}

/** What was said of a text that had to fail, and its fault. */
async function failed(kind: string, onText: OnText, wish: Partial<TextWish> = {}) {
  fakeOf(kind).playText(onText);
  const assembly = new AnswerAssembly();
  const said: AnswerEvent[] = [];
  try {
    for await (const batch of textOn(fakeOf(kind).runtime, { model: "m", ...wish })) said.push(...assembly.push(batch));
    assembly.end();
  } catch (error) {
    const { code, param, message, internal = "" } = Fault.from(error);
    expect(message + internal).not.toContain(secret);
    return { said: textOf(said), code, param, message };
  }
  throw new Error(`${kind} did not fail; it said ${JSON.stringify(said)}`);
}

describe.each(kinds)("a text on %s", (kind) => {
  test(`a text on ${kind} is continued by what the runtime says, up to its finish, and counted`, async () => {
    const events = await played(kind, goesOn);
    expect(events.filter((event) => event.kind === "text")).toEqual([
      { kind: "text", text: " there" },
      { kind: "text", text: " was" },
      { kind: "text", text: " a king." },
    ]);
    expect(events).toContainEqual({ kind: "finish", reason: "stop" });
    expect(events.at(-1)).toMatchObject({ kind: "usage", promptTokens: 20, completionTokens: 3 });
  });

  test(`a text on ${kind} is sent as it is, with what the client named and no default overruled`, async () => {
    const settings = { temperature: 0, top_p: 0.5, seed: 3, presence_penalty: 1, frequency_penalty: -1 };
    await played(kind, goesOn, { prompt: "<|user|> Hé\n", max_tokens: 7, ...settings });
    const sent = fakeOf(kind).texts().at(-1) ?? {};
    expect(sent).toMatchObject({ prompt: "<|user|> Hé\n", stream: true });
    if (kind === "ollama") expect(sent).toMatchObject({ raw: true, options: { num_predict: 7, ...settings } });
    else expect(sent).toMatchObject({ max_tokens: 7, ...settings, stream_options: { include_usage: true } });
    await played(kind, goesOn);
    for (const name of Object.keys(settings)) expect(fakeOf(kind).texts().at(-1)).not.toHaveProperty(name);
  });

  test(`a text on ${kind} comes as it is said, and shows progress with it`, async () => {
    const gate = Promise.withResolvers<void>();
    fakeOf(kind).playText(async (text) => {
      text.say(" there");
      await gate.promise;
      text.done();
    });
    const said: AnswerEvent[] = [];
    const silences: (Silence | undefined)[] = [];
    const onProgress = (silence?: Silence): void => void silences.push(silence);
    const ended = (async () => {
      for await (const batch of textOn(fakeOf(kind).runtime, { model: "m" }, { onProgress })) said.push(...batch);
    })();
    await until(() => textOf(said) === " there", { what: "the first word" });
    expect(silences).toContain(undefined);
    gate.resolve();
    await ended;
  });

  test(`a text on ${kind} that is longer than the window is refused with both numbers, and names the prompt`, async () => {
    // mlx-lm says how long it is, and reads on.
    const windows: Readonly<Record<string, number>> = { vllm: 32_768, "llama-server": 8_192, "lm-studio": 8_192 };
    const refuses = (text: AnyText): void => {
      if (kind === "mlx-lm") text.raw(": keepalive 2048/50000\n\n");
      else
        text.refuse(400, "This model's maximum context length is 4096 tokens. However, your prompt has 50000 tokens.");
    };
    const outcome = await failed(kind, refuses, { prompt: "word ".repeat(50_000) });
    expect(outcome).toMatchObject({ code: "context_length_exceeded", param: "prompt" });
    expect(outcome.message).toContain(`is ${windows[kind] ?? 4_096} tokens on this machine`);
    // vLLM counts no further than the window.
    expect(outcome.message).toMatch(
      kind === "vllm" ? /resulted in about \d+ \(estimated\) tokens/ : /resulted in 50000 tokens/,
    );
  });

  test(`a text on ${kind} that has nothing in it is refused where nothing would come of it`, async () => {
    const before = fakeOf(kind).texts().length;
    if (kind === "llama-server" || kind === "openai") {
      expect(textOf(await played(kind, goesOn, { prompt: "" }))).toBe(" there was a king.");
      return;
    }
    expect(await failed(kind, goesOn, { prompt: "" })).toMatchObject({ code: "invalid_value", param: "prompt" });
    expect(fakeOf(kind).texts().length).toBe(before);
  });
});

describe("a text ends exactly before a stop string", () => {
  test.each(kinds.filter((kind) => kind !== "mlx-lm"))(
    "a text ends exactly before a stop string, which %s is told of",
    async (kind) => {
      await played(kind, goesOn, { stop: ["s a"] });
      const sent = fakeOf(kind).texts().at(-1);
      expect(sent).toMatchObject(kind === "ollama" ? { options: { stop: ["s a"] } } : { stop: ["s a"] });
    },
  );

  test("a text ends exactly before a stop string and mlx-lm, which does not cut exactly, is cut in its place", async () => {
    const events = await played("mlx-lm", goesOn, { stop: ["s a"] });
    expect(textOf(events)).toBe(" there wa");
    expect(events.slice(-2)).toMatchObject([{ kind: "finish", reason: "stop" }, { kind: "usage" }]);
    expect(fakeOf("mlx-lm").texts().at(-1)).not.toHaveProperty("stop");
  });
});

describe("a parameter that a runtime cannot honour is refused by its name, and it is not asked", () => {
  test.each(failing)("%s honours no %s, which is refused by its name and not asked of it", async (kind, param) => {
    const before = fakeOf(kind).texts().length;
    expect(await failed(kind, goesOn, wishes[param])).toMatchObject({ code: "unsupported_parameter", param });
    expect(fakeOf(kind).texts().length).toBe(before);
  });

  test("vLLM knows itself whether its model was made for a suffix", async () => {
    expect(await failed("vllm", goesOn, { suffix: "the end" })).toMatchObject({
      code: "unsupported_parameter",
      param: "suffix",
    });
  });

  test.each(kinds)("%s is asked nothing by a field that asks for no more than every answer is anyway", async (kind) => {
    expect(textOf(await played(kind, goesOn, { logit_bias: {} }))).toBe(" there was a king.");
  });
});

test.each(telling)(
  "how likely tokens are is told in one form by %s, also where no other token is wanted",
  async (kind) => {
    const [first] = await played(kind, goesOn, { logprobs: 2 });
    expect(first).toMatchObject({ kind: "text", text: " there", logprobs: [{ token: " there", logprob: -0.25 }] });
    const [alone] = await played(kind, goesOn, { logprobs: 0 });
    expect(alone).toMatchObject({ logprobs: [{ token: " there", logprob: -0.25, top_logprobs: [] }] });
    const others = first?.kind === "text" ? (first.logprobs?.[0]?.top_logprobs ?? []) : [];
    expect(others[0]).toMatchObject({ token: " there", logprob: -0.25 });
    expect(others.map(({ logprob }) => logprob)).toEqual(
      others.map(({ logprob }) => logprob).toSorted((a, b) => b - a),
    );
  },
);

test("how likely tokens are is told in one form and a server that tells none of what was asked for is refused", async () => {
  const silent: OnText = (text) => {
    text.raw('data: {"choices":[{"index":0,"text":" there","logprobs":null,"finish_reason":null}]}\n\n');
    text.done();
  };
  expect(await failed("openai", silent, { logprobs: 1 })).toMatchObject({
    code: "unsupported_parameter",
    param: "logprobs",
  });
});

test("a text on the servers of the OpenAI shape is counted by a rule of thumb where the server does not count", async () => {
  const uncounted: OnText = (text) => {
    text.say(" there");
    text.raw('data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
    text.end();
  };
  const usage = { kind: "usage", promptTokens: 4, completionTokens: 1 };
  expect((await played("openai", uncounted, { prompt: "x".repeat(16) })).at(-1)).toEqual(usage);
});

test("a text on the servers of the OpenAI shape that thinks or calls on mlx-lm has failed: mlx-lm takes that out and says nothing in its place", async () => {
  const thinks: OnText = (text) => {
    text.say(" there");
    text.raw('data: {"choices":[{"index":0,"finish_reason":null,"text":""}]}\n\n');
    text.done();
  };
  expect(await failed("mlx-lm", thinks)).toMatchObject({ said: " there", code: "upstream_error" });
  const calls: OnText = (text) => {
    text.say(" there");
    if (!("line" in text)) text.done({ finishReason: "tool_calls" });
  };
  expect(await failed("mlx-lm", calls)).toMatchObject({ said: " there", code: "upstream_error" });
});

test("a text on the servers of the OpenAI shape has a limit of its own only where the server would cut it short without one", async () => {
  const limits = new Map<string, unknown>();
  for (const kind of kinds) {
    await played(kind, goesOn, { prompt: "x".repeat(400) });
    limits.set(kind, fakeOf(kind).texts().at(-1)?.["max_tokens"]);
  }
  expect(Object.fromEntries(limits)).toEqual({ vllm: 3_996, "mlx-lm": 3_996, openai: 3_996 });
});
