import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ManageAction, ManageProgress } from "#shared/protocol/job-bodies.ts";
import { catalogue } from "#shared/protocol/model.ts";
import { ollamaRuntime, type OllamaRuntime } from "../../services/agent/runtimes/ollama/ollama.ts";
import { chatOn, eventsOf, managed, offeredBy, textOf, textOn, type TextWish } from "../harness/ask-runtime.ts";
import { FakeOllama, type FakeOllamaModel } from "../harness/fake-ollama.ts";
import { until } from "../harness/until.ts";

const { signal } = new AbortController();
let ollama: FakeOllama;
let runtime: OllamaRuntime;

beforeEach(async () => {
  ollama = await FakeOllama.start({ models: [{ name: "llama3.2:latest" }] });
  runtime = ollamaRuntime({ url: ollama.url, host: { platform: "darwin", arch: "arm64" } });
});
afterEach(async () => {
  await runtime.close();
  await ollama.stop();
});

test.each(["llama3.2", "llama3.2:latest"])("a chat on Ollama reaches the model by the name %s", async (model) => {
  for (const known of [false, true]) {
    if (known) await runtime.catalogue(new AbortController().signal);
    expect(textOf(await eventsOf(chatOn(runtime, { model })))).toBe("Hello from Ollama.");
  }
});

test("a chat on Ollama is refused before Ollama is asked for a model that it does not have", async () => {
  const asked = eventsOf(chatOn(runtime, { model: "none" }));
  await expect(asked).rejects.toMatchObject({ code: "model_not_found", param: "model" });
  expect(ollama.requestsTo("/api/chat")).toEqual([]);
});

test("a chat on Ollama is closed at Ollama also when its reader merely stops", async () => {
  ollama.onChat = (chat) => chat.say("first");
  for await (const batch of chatOn(runtime, { model: "llama3.2" })) if (batch.length > 0) break;
  await until(() => ollama.requestsTo("/api/chat")[0]?.closedEarly, { what: "the closed request" });
});

test("a chat on Ollama that waits for its model to be loaded is refused by Ollama's full queue, and no other chat is", async () => {
  ollama.queueFull = true;
  const chat = () => eventsOf(chatOn(runtime, { model: "llama3.2" }));
  await expect(chat()).rejects.toMatchObject({ code: "server_is_overloaded" });
  ollama.models = ollama.models.map((model) => ({ ...model, loadedTokens: 4_096 }));
  expect(await chat()).toContainEqual({ kind: "finish", reason: "stop" });
});

async function ids(): Promise<string[]> {
  return (await offeredBy(runtime)).map(({ id }) => id);
}

test("the catalogue of an Ollama lists what this machine can serve, and nothing from the cloud or of no use", async () => {
  ollama.models = [
    { name: "llama3.2:latest", capabilities: ["completion", "tools"], loadedTokens: 32_768 },
    {
      name: "nomic-embed-text:latest",
      capabilities: ["embedding"],
      architecture: "nomic-bert",
      trainedTokens: 2_048,
    },
    { name: "qwen3.5:9b-mlx", capabilities: ["completion"], format: "safetensors", architecture: "qwen3.5" },
    { name: "gpt-oss:120b-cloud", capabilities: ["completion"], remoteHost: "https://ollama.com:443" },
    { name: "painter:latest", capabilities: ["image"] },
  ];
  expect(catalogue.parse(await offeredBy(runtime))).toMatchObject([
    { id: "llama3.2", context_window: 32_768, runtime_profile: "auto", capabilities: { tools: true }, loaded: true },
    { id: "nomic-embed-text", context_window: 2_048, capabilities: { completion: false, embedding: true } },
    { id: "qwen3.5:9b-mlx", context_window: 131_072, runtime_profile: "apple-mlx", apple_mlx: true },
  ]);
});

test("the catalogue of an Ollama asks what a model can do once for each of its versions", async () => {
  await ids();
  await ids();
  expect(ollama.requestsTo("/api/show")).toHaveLength(1);
  ollama.models = [{ name: "llama3.2:latest", digest: "another", capabilities: ["completion", "tools"] }];
  expect(await offeredBy(runtime)).toMatchObject([{ capabilities: { tools: true } }]);
  expect(ollama.requestsTo("/api/show")).toHaveLength(2);
});

test("the catalogue of an Ollama follows models that come and go", async () => {
  ollama.models = [{ name: "one:1b" }, { name: "two:2b" }];
  expect(await ids()).toEqual(["one:1b", "two:2b"]);
  ollama.models = [];
  expect(await ids()).toEqual([]);
});

test("the catalogue of an Ollama is learnt anew of an Ollama that was away: it may be another version, set up in another way", async () => {
  const port = Number(new URL(ollama.url).port);
  const model = { name: "llama3.2:latest", digest: "same" };
  ollama.models = [{ ...model, loadedTokens: 32_768 }];
  expect(await offeredBy(runtime)).toMatchObject([{ context_window: 32_768, capabilities: { tools: false } }]);
  await ollama.stop();
  await expect(runtime.catalogue(signal)).rejects.toMatchObject({ code: "runtime_offline" });
  ollama = await FakeOllama.start({ port, models: [{ ...model, capabilities: ["completion", "tools"] }] });
  expect(await offeredBy(runtime)).toMatchObject([{ context_window: 4_096, capabilities: { tools: true } }]);
});

test("the catalogue of an Ollama is not hidden by one damaged model", async () => {
  ollama.models = [{ name: "bad:1b", damaged: true }, { name: "good:1b" }];
  expect(await ids()).toEqual(["good:1b"]);
});

test("the catalogue of an Ollama keeps what it learnt when there was no time for all, so that the next reading gets further", async () => {
  ollama.models = Array.from({ length: 20 }, (_, at) => ({ name: `m${at}:1b` }));
  const abort = new AbortController();
  const cut = runtime.catalogue(abort.signal);
  await until(() => ollama.requestsTo("/api/show").length > 8, { what: "a second round", intervalMs: 1 });
  abort.abort(new Error("out of time"));
  await cut.catch(() => {});
  const asked = ollama.requestsTo("/api/show").length;
  expect(await ids()).toHaveLength(20);
  expect(ollama.requestsTo("/api/show").length - asked).toBeLessThan(20);
});

test("the catalogue of an Ollama is refused when Ollama does not answer, and ends at once with its signal", async () => {
  const abort = new AbortController();
  const reason = new Error("out of time");
  ollama.silent = true;
  const asked = runtime.catalogue(abort.signal);
  await until(() => ollama.requests.length > 0, { what: "the question" });
  abort.abort(reason);
  await expect(asked).rejects.toBe(reason);
  await ollama.stop();
  await expect(runtime.catalogue(signal)).rejects.toMatchObject({ message: "The runtime does not answer." });
  ollama = await FakeOllama.start();
});

describe("the models of an Ollama are managed", () => {
  beforeEach(() => {
    ollama.models = [{ name: "llama3.2:latest" }, { name: "nomic:latest", capabilities: ["embedding"] }];
  });

  function manage(action: ManageAction, model: string, until_ = signal): Promise<ManageProgress[]> {
    return managed(runtime, { action, model, signal: until_ });
  }

  test("a model is pulled with how far it is, layer by layer, and is there at the end", async () => {
    expect(await manage("pull", "phi4")).toEqual([
      { status: "pulling manifest" },
      { status: "pulling 6a0746a1ec1a", totalBytes: 2_000_000, completedBytes: 0 },
      { status: "pulling 6a0746a1ec1a", totalBytes: 2_000_000, completedBytes: 1_200_000 },
      { status: "pulling 6a0746a1ec1a", totalBytes: 2_000_000, completedBytes: 2_000_000 },
      { status: "verifying sha256 digest" },
      { status: "writing manifest" },
      { status: "success" },
    ]);
    expect((await runtime.catalogue(signal)).map(({ id }) => id)).toContain("phi4");
  });

  test.each([
    [
      "there is none of that name, which Ollama says within a success",
      [{ status: "pulling manifest" }, { error: "pull model manifest: file does not exist at /root/.ollama" }],
      { code: "model_not_found", param: "model" },
    ],
    [
      "the disk is full in the middle",
      [
        { status: "pulling 6a0746a1ec1a", total: 2_000_000, completed: 1_200_000 },
        { error: "write /root/.ollama/models/blobs/sha256-6a07-partial: no space left on device" },
      ],
      { code: "upstream_error", message: expect.stringContaining("disk") },
    ],
    ["Ollama ends before its success", [{ status: "pulling manifest" }], { code: "upstream_error" }],
  ])("a pull fails when %s, and its error shows no path", async (_, told, fault) => {
    ollama.onPull = () => told;
    const pulled = manage("pull", "phi4");
    await expect(pulled).rejects.toMatchObject(fault);
    await expect(pulled).rejects.not.toThrow(/\.ollama/);
  });

  test("a model is pulled no more when nobody waits for it", async () => {
    const never = Promise.withResolvers<void>();
    ollama.onPull = async function* () {
      yield { status: "pulling manifest" };
      await never.promise;
    };
    const leaving = new AbortController();
    const pulled = manage("pull", "phi4", leaving.signal).catch(() => "left");
    const request = await until(() => ollama.requestsTo("/api/pull")[0], { what: "the pull" });
    leaving.abort(new Error("nobody waits"));
    expect(await pulled).toBe("left");
    await until(() => request.closedEarly, { what: "the request to be closed" });
    never.resolve();
  });

  test.each(["llama3.2", "nomic"])("a model is loaded until it is unloaded: %s", async (model) => {
    await manage("load", model);
    const loaded = () => ollama.models.filter((each) => each.loadedTokens !== undefined).map(({ name }) => name);
    expect(loaded()).toEqual([`${model}:latest`]);
    expect(ollama.requests.at(-1)?.body).toMatchObject({ keep_alive: -1 });
    await manage("unload", model);
    expect(loaded()).toEqual([]);
  });

  test("a model is removed", async () => {
    await manage("remove", "llama3.2");
    expect(ollama.models.map(({ name }) => name)).toEqual(["nomic:latest"]);
    await expect(manage("remove", "llama3.2")).rejects.toMatchObject({ code: "model_not_found" });
  });
});

/** Offers one model in place of all others, and returns what it makes of a text. */
function offer(model: Partial<FakeOllamaModel> = {}) {
  ollama.models = [{ name: "m:latest", ...model }];
  return (wish: Partial<TextWish> = {}, options: Parameters<typeof textOn>[2] = {}) =>
    eventsOf(textOn(runtime, { model: "m", ...wish }, options));
}

test("a text on Ollama is a bare prompt, which is never cut, and whose thoughts are part of the text", async () => {
  const answer = offer({ capabilities: ["completion", "thinking"] });
  ollama.onText = (text) => {
    text.think("hm");
    text.say(" there");
    text.done();
  };
  expect(textOf(await answer())).toBe("<think>hm</think> there");
  expect(ollama.requestsTo("/api/generate")[0]?.body).toEqual({
    model: "m",
    prompt: "Once upon a time",
    raw: true,
    stream: true,
    truncate: false,
    think: false,
    options: {},
  });
});

test("a text on Ollama says a thought that was told apart all the same", async () => {
  const answer = offer();
  ollama.onText = (text) => {
    text.line({ response: " there", thinking: "hm", done: false });
    text.done();
  };
  expect(textOf(await answer())).toBe("hm there");
});

test("a text on Ollama is filled in before a suffix by the template of a model that was made for it", async () => {
  const answer = offer({ capabilities: ["completion", "insert"] });
  await answer({ suffix: "}" });
  expect(ollama.requestsTo("/api/generate")[0]?.body).toMatchObject({ suffix: "}", raw: false });
});

test("a text on Ollama is cut at stop strings in the place of the MLX engine, which is told of none and of no likelihoods", async () => {
  const answer = offer({ format: "safetensors" });
  const events = await answer({ stop: ["so o"] });
  expect(textOf(events)).toBe(" and ");
  expect(events.slice(-2)).toMatchObject([{ kind: "finish", reason: "stop" }, { kind: "usage" }]);
  expect(ollama.requestsTo("/api/generate")[0]?.body["options"]).toEqual({});
  await expect(answer({ logprobs: 1 })).rejects.toMatchObject({ param: "logprobs" });
});

test("a text on Ollama asks for others in place of a token only where some are wanted", async () => {
  const answer = offer();
  await answer({ logprobs: 0 });
  await answer({ logprobs: 3 });
  const [none, some] = ollama.requestsTo("/api/generate").map(({ body }) => body);
  expect(none).toMatchObject({ logprobs: true });
  expect(none).not.toHaveProperty("top_logprobs");
  expect(some).toMatchObject({ logprobs: true, top_logprobs: 3 });
});

test("a text on Ollama has come to its limit where Ollama ends it without a word, since the model repeats itself", async () => {
  const answer = offer();
  ollama.onText = (text) => {
    for (let again = 0; again < 31; again += 1) text.say("same");
    text.end();
  };
  const events = await answer({ prompt: "x".repeat(40) });
  expect(events.slice(-2)).toEqual([
    { kind: "finish", reason: "length" },
    { kind: "usage", promptTokens: 10, completionTokens: 31 },
  ]);
});

test("a text on Ollama tells that the model is loaded first", async () => {
  const answer = offer();
  const silences: unknown[] = [];
  await answer({}, { onProgress: (silence) => silences.push(silence) });
  expect(silences[0]).toBe("loading");
});

test("a text on Ollama on a model that does not exist, or that only embeds, is refused", async () => {
  const answer = offer({ capabilities: ["embedding"] });
  await expect(answer({ model: "other" })).rejects.toMatchObject({ code: "model_not_found" });
  await expect(answer()).rejects.toMatchObject({ code: "unsupported_value", param: "model" });
});
