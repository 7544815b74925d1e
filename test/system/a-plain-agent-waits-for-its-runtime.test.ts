import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { refusalOf } from "../harness/endpoint.ts";
import { FakeOllama } from "../harness/fake-ollama.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { freePort } from "../harness/free-port.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const adoptsWithinMs = 3_000;
const noticesWithinMs = 5_000;

describe.skipIf(lentOnly("nats", "redis"))("a plain agent whose model server is not there yet", () => {
  let port: number;
  let fleet: Fleet;
  beforeEach(async () => {
    port = await freePort();
    const env = { TRUNKLINE_RUNTIME: "auto", TRUNKLINE_RUNTIME_URL: `http://127.0.0.1:${port}` };
    fleet = await startFleet({ machines: { attic: { env } } });
  });
  afterEach(() => fleet[Symbol.asyncDispose]());

  const listing = () => fleet.endpoint.models();
  const refusal = (model: string) => refusalOf(fleet.endpoint.chat({ model, says: "Hello" }));
  const waiting = async () => (await listing()).code === "runtime_offline";
  const offering = async () => (await listing()).ids.includes("llama3.2");

  test("a plain agent whose model server is not there yet waits and says so, adopts it within 3 s of its start, and lets go of it when it is gone", async () => {
    expect((await fleet.agent("attic").logged("no runtime answers yet")).level).toBe(40);
    await until(waiting, { what: "the gateway to know that the runtime is away" });
    expect((await listing()).status).toBe(503);
    expect(await refusal("scripted")).toMatchObject({ status: 404, code: "model_not_found" });

    {
      await using ollama = await FakeOllama.start({ port });
      await until(offering, { what: "the model server to be adopted", timeoutMs: adoptsWithinMs });
      expect(ollama.url).toContain(String(port));
      expect(await fleet.endpoint.answer({ model: "llama3.2", says: "Hello" })).toBe("Hello from Ollama.");
    }

    await until(waiting, { what: "the loss to be noticed", timeoutMs: noticesWithinMs });
    const refused = async () => (await refusal("llama3.2")).code === "runtime_offline";
    await until(refused, { what: "chats to be told that the runtime is away", timeoutMs: noticesWithinMs });

    await using again = await FakeOllama.start({ port });
    await until(offering, { what: "the model server to be adopted again", timeoutMs: adoptsWithinMs });
    again.models = [...again.models, { name: "qwen3:8b" }];
    await fleet.endpoint.untilListed("qwen3:8b");
    expect(await fleet.endpoint.answer({ model: "qwen3:8b", says: "Hello" })).toBe("Hello from Ollama.");
  });

  test("a plain agent whose model server is not there yet does not keep the other machines from being listed", async () => {
    await fleet.startAgent("cellar", { models: ["scripted:plain"] });
    const other = async () => (await listing()).ids.includes("scripted:plain");
    await until(other, { what: "the other machine" });
    expect(await listing()).toEqual({ status: 200, ids: ["scripted:plain"], code: undefined, unanswered: null });
  });
});
