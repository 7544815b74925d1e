import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ManageAction, ManageProgress } from "#shared/protocol/job-bodies.ts";
import { ollamaRuntime, type OllamaRuntime } from "../../services/agent/runtimes/ollama/ollama.ts";
import { chatOn, eventsOf, managed } from "../harness/ask-runtime.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { until } from "../harness/until.ts";

const { signal } = new AbortController();
let ollama: FakeOllama;
let runtime: OllamaRuntime;

beforeEach(async () => {
  ollama = await FakeOllama.start({
    models: [{ name: "llama3.2:latest" }, { name: "nomic:latest", capabilities: ["embedding"] }],
  });
  runtime = ollamaRuntime({ url: ollama.url });
});
afterEach(async () => {
  await runtime.close();
  await ollama.stop();
});

function manage(action: ManageAction, model: string, until_ = signal): Promise<ManageProgress[]> {
  return managed(runtime, { action, model, signal: until_ });
}

const loaded = () => ollama.models.filter(({ loadedTokens }) => loadedTokens !== undefined).map(({ name }) => name);

describe("a model is pulled", () => {
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

  test("a model is pulled and not, when there is none of that name, which Ollama says within a success", async () => {
    ollama.onPull = () => [
      { status: "pulling manifest" },
      { error: "pull model manifest: file does not exist at /root/.ollama" },
    ];
    const pulled = manage("pull", "phi5");
    await expect(pulled).rejects.toMatchObject({ code: "model_not_found", param: "model" });
    await expect(pulled).rejects.not.toThrow(/\.ollama/);
  });

  test("a model is pulled and not, when the disk is full in the middle, which is told", async () => {
    ollama.onPull = () => [
      { status: "pulling 6a0746a1ec1a", total: 2_000_000, completed: 1_200_000 },
      { error: "write /root/.ollama/models/blobs/sha256-6a07-partial: no space left on device" },
    ];
    const pulled = manage("pull", "phi4");
    await expect(pulled).rejects.toMatchObject({ code: "upstream_error", message: expect.stringContaining("disk") });
    await expect(pulled).rejects.not.toThrow(/\.ollama/);
  });

  test("a model is pulled and not, when Ollama ends before its success", async () => {
    ollama.onPull = () => [{ status: "pulling manifest" }];
    await expect(manage("pull", "phi4")).rejects.toMatchObject({ code: "upstream_error" });
  });

  test("no more, when nobody waits for it", async () => {
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
});

describe("a model is", () => {
  test.each(["llama3.2", "nomic"])("loaded until it is unloaded: %s", async (model) => {
    await manage("load", model);
    expect(loaded()).toEqual([`${model}:latest`]);
    expect(ollama.requests.at(-1)?.body).toMatchObject({ keep_alive: -1 });
    await manage("unload", model);
    expect(loaded()).toEqual([]);
  });

  test("removed", async () => {
    await manage("remove", "llama3.2");
    expect(ollama.models.map(({ name }) => name)).toEqual(["nomic:latest"]);
    await expect(manage("remove", "llama3.2")).rejects.toMatchObject({ code: "model_not_found" });
  });
});

describe("Ollama's queue", () => {
  test("refuses who waits for a model to be loaded, and nobody else", async () => {
    ollama.queueFull = true;
    const chat = () => eventsOf(chatOn(runtime, { model: "llama3.2" }));
    await expect(chat()).rejects.toMatchObject({ code: "server_is_overloaded" });
    ollama.models = ollama.models.map((model) => ({ ...model, loadedTokens: 4_096 }));
    expect(await chat()).toContainEqual({ kind: "finish", reason: "stop" });
  });
});
