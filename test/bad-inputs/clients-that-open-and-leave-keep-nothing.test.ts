import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { issueKey } from "#shared/records/issue-key.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { Operator } from "../harness/operator.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { postedJson } from "./sent.ts";

let up: UpProcess;
let endpoint: Endpoint;
beforeAll(async () => {
  up = await startUp({ TRUNKLINE_KEY_PEPPER: testPepper, TRUNKLINE_SLOTS: "2" });
  await using operator = await Operator.on({ stateDir: up.stateDir });
  const { keys, peppers } = operator.store;
  const limits = { concurrency: 1 } as const;
  const means = { keys, peppers, clock, actor: { by: "the test" } };
  const { token } = await issueKey({ name: "test", scopes: ["*"], ttlMs: 3_600_000, limits }, means);
  endpoint = up.endpoint.withKey(token.reveal());
});
afterAll(() => up[Symbol.asyncDispose]());

/** A stream without an end, as far as this test is concerned. */
const endless = (key: string): string | Buffer =>
  postedJson({
    model: "scripted",
    stream: true,
    messages: [{ role: "user", content: "/script tokens=100000 delay_ms=20" }],
  })({ key });

/** Opens a connection, asks for a stream, and leaves: at once, or at the first byte of the answer. */
function openAndLeave({ key }: { key: string }, leaves: "at once" | "at the first byte"): Promise<void> {
  const { hostname, port } = new URL(up.endpoint.baseUrl);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.on("error", () => undefined);
    socket.on("close", () => resolve());
    socket.on("data", () => socket.resetAndDestroy());
    socket.write(endless(key), () => {
      if (leaves === "at once") socket.resetAndDestroy();
    });
  });
}

const filesOpen = async (pid: number): Promise<number> => (await readdir(`/proc/${pid}/fd`)).length;

test("a client that opens streams and leaves, a thousand times, leaves nothing taken", async () => {
  const [{ pid } = { pid: 0 }] = await up.logLines();
  const before = await filesOpen(Number(pid));
  for (let round = 0; round < 25; round += 1) {
    const leaving = Array.from({ length: 40 }, (_, place) =>
      openAndLeave(up.endpoint, place % 8 === 0 && place < 16 ? "at the first byte" : "at once"),
    );
    await Promise.all(leaving);
  }
  // Its one seat is free again and again, and so is a slot of the machine.
  for (let time = 0; time < 10; time += 1) {
    await openAndLeave(endpoint, time % 2 === 0 ? "at once" : "at the first byte");
  }
  const served = await until(
    async () => {
      const response = await endpoint.chat({ model: "scripted", says: "/script tokens=1" });
      return response.status === 200 && (await response.text());
    },
    { what: "the seat and a slot to be free" },
  );
  expect(served).toContain("token-0");
  await until(async () => (await filesOpen(Number(pid))) <= before + 2, { what: "the connections to be gone" });
  // A stop waits for what is still under way.
  const askedAtMs = performance.now();
  expect(await up.terminate()).toBe(0);
  expect(performance.now() - askedAtMs).toBeLessThan(5_000);
  expect((await up.logLines()).filter(({ level }) => level >= 50)).toEqual([]);
});
