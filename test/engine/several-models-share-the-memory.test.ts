import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ManageProgress } from "#shared/protocol/job-bodies.ts";
import { until } from "../harness/until.ts";
import { noEngine, only, saidIn, TinyRuntime } from "./tiny-runtime.ts";
import { emittedBy, managed } from "../harness/ask-runtime.ts";

const signal = new AbortController().signal;

describe.skipIf(noEngine)("several models", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    const [one, two] = ["one", "two"].map((name) => ({ name, scripts: { "<|assistant|>": [`I am ${name}.`] } }));
    const embeds = {
      name: "vectors",
      scripts: { "<|assistant|>": ["north", "south"] },
      embeds: true,
      contextTokens: 32,
    };
    tiny = await TinyRuntime.start([one, two, embeds].filter((each) => each !== undefined));
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  const loaded = async (): Promise<string[]> =>
    (await tiny.runtime.catalogue(signal)).filter((model) => model.loaded).map(({ id }) => id);
  const manage = async (action: "load" | "unload", model: string): Promise<ManageProgress[]> =>
    managed(tiny.runtime, { action, model, signal });

  test("several models are offered by the names of their files, and loaded when they are asked for", async () => {
    const offered = await tiny.runtime.catalogue(signal);
    expect(offered.map(({ id }) => id)).toEqual(["one", "two", "vectors"]);
    expect(offered[0]).toMatchObject({
      ownedBy: "gguf",
      sizeBytes: expect.any(Number),
      createdSeconds: expect.any(Number),
    });
    expect(await loaded()).toEqual([]);
    let silence: string | undefined;
    const events = await tiny.events({ onProgress: (at) => void (silence ??= at) });
    expect([saidIn(events), silence]).toEqual(["I am one.", "loading"]);
    expect(await loaded()).toEqual(["one"]);
  });

  test("several models can be loaded and unloaded by an operator", async () => {
    expect((await manage("load", "two")).at(-1)).toEqual({ status: "loaded" });
    expect(await loaded()).toContain("two");
    expect((await manage("unload", "two")).at(-1)).toEqual({ status: "unloaded" });
    expect(await loaded()).not.toContain("two");
  });

  test("several models are not unloaded under an answer", async () => {
    const answer = tiny.batches();
    await answer.next();
    await expect(manage("unload", "one")).rejects.toMatchObject({ code: "server_is_overloaded" });
    await answer.return(undefined);
    await manage("unload", "one");
    expect(saidIn(await tiny.events())).toBe("I am one.");
  });

  test("several models that nobody has is told so", async () => {
    const run = { model: "three", signal, onProgress: () => {}, contextWindow: 1, body: { messages: [] } };
    const capabilities = { completion: true, vision: false, embedding: false, tools: false, thinking: false };
    await expect(emittedBy((emit) => tiny.runtime.chat({ ...run, capabilities }, emit))).rejects.toMatchObject({
      code: "model_not_found",
    });
  });
});

describe.skipIf(noEngine)("a model that embeds", () => {
  let tiny: TinyRuntime;
  beforeAll(async () => {
    const scripts = { "<|assistant|>": ["north", "south"] };
    tiny = await TinyRuntime.start({
      name: "vectors",
      scripts,
      embeds: true,
      contextTokens: 32,
      organization: "Compass",
    });
  });
  afterAll(() => tiny[Symbol.asyncDispose]());

  test("a model that embeds is known by its file, and loads by itself when it is the only one", async () => {
    const look = async () => (await tiny.runtime.catalogue(signal)).find((model) => model.loaded);
    expect(await until(look, { what: "the model to be loaded" })).toMatchObject({
      id: "vectors",
      ownedBy: "Compass",
      contextTokens: 32,
      capabilities: { completion: false, embedding: true },
    });
  });

  test("a model that embeds gives each text a vector of length one, and counts", async () => {
    const events = await tiny.embed(["north", "south", "north"]);
    const vectors = events.flatMap((event) => (event.kind === "embedding" ? [event.vector] : []));
    expect(vectors.map((vector) => Math.round(Math.hypot(...vector) * 1e6) / 1e6)).toEqual([1, 1, 1]);
    expect(vectors[2]).toEqual(vectors[0]);
    expect(vectors[1]).not.toEqual(vectors[0]);
    expect(only(events, "usage")).toMatchObject({ promptTokens: 3, completionTokens: 0 });
  });

  test("a model that embeds reads a text as long as its window, and refuses a longer one with both numbers", async () => {
    expect(await tiny.embed(["x".repeat(32)])).toHaveLength(2);
    await expect(tiny.embed(["x", "x".repeat(33)])).rejects.toMatchObject({
      code: "context_length_exceeded",
      param: "input",
      message: expect.stringMatching(/\b32\b.*\b33\b/),
    });
  });

  test("a model that embeds refuses to shorten vectors", async () => {
    await expect(tiny.embed(["north"], 8)).rejects.toMatchObject({ param: "dimensions" });
  });
});
