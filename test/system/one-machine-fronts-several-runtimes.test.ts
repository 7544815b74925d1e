import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Endpoint, refusalOf } from "../harness/endpoint.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { freePort } from "../harness/free-port.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";

const showsWithinMs = 3_000;

/** Says which of the two answered. */
async function ollamaSaying(text: string, port: number, models: readonly string[]): Promise<FakeOllama> {
  const ollama = await FakeOllama.start({ port, models: models.map((name) => ({ name })) });
  ollama.onChat = (chat) => {
    chat.say(text);
    chat.done();
  };
  return ollama;
}

describe("a machine with two model servers", () => {
  let ports: [number, number];
  let one: FakeOllama;
  let other: FakeOllama;
  let up: UpProcess;
  let endpoint: Endpoint;

  beforeEach(async () => {
    ports = [await freePort(), await freePort()];
    one = await ollamaSaying("one", ports[0], ["qwen3:8b", "phi4:latest"]);
    other = await ollamaSaying("other", ports[1], ["qwen3:8b", "tiny:1b"]);
    const modelsFile = join(folderOfTest(), "models.json");
    writeFileSync(modelsFile, JSON.stringify({ "tiny*": { capabilities: { tools: true }, context_window: 512 } }));
    up = await startUp({
      TRUNKLINE_RUNTIME: "auto",
      TRUNKLINE_RUNTIME_URL: ports.map((port) => `http://127.0.0.1:${port}`).join(","),
      TRUNKLINE_MODELS_FILE: modelsFile,
    });
    ({ endpoint } = up);
  });
  afterEach(async () => {
    await up[Symbol.asyncDispose]();
    await Promise.all([one.stop(), other.stop()]);
  });

  const ids = async () => (await endpoint.models()).ids;
  const chat = (model: string) => endpoint.answer({ model, says: "Hello" });

  test("a machine with two model servers offers all of their models under ids of their own, and asks the right one", async () => {
    expect(await ids()).toEqual(["phi4", "qwen3:8b", "qwen3:8b-ollama", "tiny:1b"]);
    const answers = await Promise.all(["phi4", "qwen3:8b", "qwen3:8b-ollama", "tiny:1b"].map(chat));
    expect(answers).toEqual(["one", "one", "other", "other"]);
  });

  test("a machine with two model servers tells clients what the contract has, with what the operator says of a model and nothing else", async () => {
    const response = await endpoint.get("/models/tiny:1b");
    expect(await response.json()).toEqual({
      id: "tiny:1b",
      object: "model",
      created: expect.any(Number),
      owned_by: "library",
      capabilities: { completion: true, vision: false, embedding: false, tools: true, thinking: false },
      context_window: 512,
      size_mb: 2_019,
      runtime_profile: "auto",
    });
  });

  test("a machine with two model servers shows within three seconds what comes and goes on them", async () => {
    const within = { timeoutMs: showsWithinMs };
    one.models = [...one.models, { name: "new:7b" }];
    await until(async () => (await ids()).includes("new:7b"), { what: "a model that was pulled", ...within });
    one.models = one.models.filter(({ name }) => name !== "phi4:latest");
    await until(async () => !(await ids()).includes("phi4"), { what: "a model that was removed", ...within });
    other.models = other.models.map((model) => ({ ...model, loadedTokens: 65_536 }));
    const window = async () => {
      const response = await endpoint.get("/models/qwen3:8b-ollama");
      return ((await response.json()) as { context_window: number }).context_window;
    };
    await until(async () => (await window()) === 65_536, { what: "the window of a model that was loaded", ...within });
  });

  test("a machine with two model servers goes on with one of them when the other dies, and has its models again when it is back", async () => {
    await other.stop();
    const left = async () => (await ids()).join() === "phi4,qwen3:8b";
    await until(left, { what: "the models of the dead one to go", timeoutMs: showsWithinMs });
    expect(await chat("qwen3:8b")).toBe("one");
    const away = async () =>
      (await refusalOf(endpoint.chat({ model: "tiny:1b", says: "Hello" }))).code === "agent_offline";
    await until(away, { what: "a chat with its model to be told that it is away" });
    other = await ollamaSaying("again", ports[1], ["qwen3:8b", "tiny:1b"]);
    const back = async () => (await ids()).includes("tiny:1b");
    await until(back, { what: "the models to be back", timeoutMs: showsWithinMs });
    expect(await Promise.all(["qwen3:8b-ollama", "tiny:1b"].map(chat))).toEqual(["again", "again"]);
  });
});
