import { expect, onTestFinished, test } from "vitest";
import { FakeVllm } from "../harness/fake-vllm.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";

const [small, large] = ["Qwen/Qwen3-8B", "Qwen/Qwen3-32B"];

async function vllm(id: string, sleeps: boolean | "in vain"): Promise<FakeVllm> {
  const server = await FakeVllm.start({ models: [{ id }], sleeps });
  onTestFinished(() => server[Symbol.asyncDispose]());
  return server;
}

async function machine(servers: readonly FakeVllm[]): Promise<UpProcess> {
  const urls = servers.map(({ url }) => url).join(",");
  const up = await startUp({
    TRUNKLINE_RUNTIME: "vllm",
    TRUNKLINE_RUNTIME_URL: urls,
    TRUNKLINE_MANAGE: "place",
  });
  onTestFinished(() => up[Symbol.asyncDispose]());
  return up;
}

test("a model of vLLM that sleeps is woken for a request, and is answered then", async () => {
  const server = await vllm(small, true);
  server.isSleeping = true;
  const { endpoint } = await machine([server]);
  expect(await endpoint.answer({ model: small, says: "Hi" })).not.toBe("");
  expect(server.isSleeping).toBe(false);
});

test("a model that nobody uses goes to sleep where another one needs its memory", async () => {
  const [one, other] = [await vllm(small, true), await vllm(large, true)];
  other.isSleeping = true;
  other.mayWake = () => one.isSleeping;
  const { endpoint } = await machine([one, other]);
  await endpoint.answer({ model: small, says: "Hi" });
  await endpoint.answer({ model: large, says: "Hi" });
  expect([one.isSleeping, other.isSleeping]).toEqual([true, false]);
});

test("a vLLM without sleep mode is never told to sleep, and is not asked again and again", async () => {
  const server = await vllm(small, false);
  const { endpoint } = await machine([server]);
  await endpoint.answer({ model: small, says: "Hi" });
  const looks = (): number => server.requests.filter(({ path }) => path === "/v1/models").length;
  const before = looks();
  await until(() => looks() > before + 1, { what: "two more looks at its models" });
  expect(server.requests.filter(({ path }) => path === "/is_sleeping")).toHaveLength(1);
});

test("a vLLM that would sleep without freeing memory is not told to", async () => {
  const [one, other] = [await vllm(small, "in vain"), await vllm(large, true)];
  other.isSleeping = true;
  let wakes = 0;
  other.mayWake = () => (wakes += 1) > 1;
  const { endpoint } = await machine([one, other]);
  await endpoint.answer({ model: small, says: "Hi" });
  await (await endpoint.chat({ model: large, says: "Hi" })).text();
  expect(wakes).toBeGreaterThan(0);
  expect(one.requests.filter(({ path }) => path.startsWith("/sleep"))).toEqual([]);
});
