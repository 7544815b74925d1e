import { resolve } from "node:path";
import { expect, test } from "vitest";
import { timingAt } from "#shared/protocol/timing.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import type { EventStream } from "../harness/event-stream.ts";
import { findBinary } from "../harness/find-binary.ts";
import { OwnedChild } from "../harness/owned-child.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { anywhere, demonstration, readyIn, startUp } from "../harness/start-trunkline.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";

const slow = { model: "scripted", says: "/script tokens=40 delay_ms=25 nonce=abc" };
const whole = Array.from({ length: 40 }, (_, index) => `abc-${index} `).join("");

async function begun(endpoint: Endpoint): Promise<EventStream> {
  const stream = await endpoint.stream(slow);
  await until(() => stream.text.includes("abc-1 "), { what: "the first tokens" });
  return stream;
}

/** Waits for the end of a stream that lacks nothing. */
async function expectWhole(stream: EventStream): Promise<void> {
  expect(await stream.over).toBe("closed");
  expect([stream.text, stream.done]).toEqual([whole, true]);
}

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
  "%s lets a running stream finish, takes nothing new, and ends with 0",
  async (signal) => {
    await using up = await startUp();
    const stream = await begun(up.endpoint);
    const exit = up.terminate(signal);
    const isAway = async (): Promise<boolean> => (await turnedAway(up.endpoint)) && !stream.done;
    await until(isAway, { what: "a new request to be turned away while the stream runs" });
    await expectWhole(stream);
    expect(await exit).toBe(0);
  },
);

test("the end of the npm that started it ends it as well, and a running stream is finished first", async () => {
  const stateDir = folderOfTest();
  const home = resolve(import.meta.dirname, "../..");
  await using npm = await OwnedChild.start({
    binary: (await findBinary("npm")) ?? "npm",
    args: ["--prefix", home, "run", "-s", "trunkline", "--", "up", "--json"],
    environment: { PATH: process.env["PATH"], TRUNKLINE_STATE_DIR: stateDir, ...anywhere, ...demonstration },
  });
  const ready = async () => /^.*\n/.exec(await npm.stdout())?.[0];
  const { endpoint } = readyIn(await until(ready, { what: "its ready line", timeoutMs: 10_000 }));
  const stream = await begun(endpoint);
  npm.signal("SIGTERM");
  await until(() => npm.ended, { what: "npm to end" });
  await expectWhole(stream);
  await until(async () => turnedAway(endpoint), { what: "its end" });
});

test("a stream that is not finished by the deadline is told so, and the exit code is still 0", async () => {
  await using up = await startUp({ TRUNKLINE_DRAIN_MS: "300" });
  const stream = await up.endpoint.stream({ model: "scripted", says: "/script tokens=100000 delay_ms=20" });
  const exit = up.terminate();
  expect(await stream.over).toBe("closed");
  expect(stream.events.at(-1)).toContain('"code":"shutting_down"');
  expect(await exit).toBe(0);
});

test("a second Ctrl-C ends it at once", async () => {
  await using up = await startUp();
  const stream = await up.endpoint.stream({ model: "scripted", says: "/script tokens=100000 delay_ms=20" });
  const first = up.terminate("SIGINT");
  await up.logged("stopping");
  expect(await up.terminate("SIGINT")).toBe(130);
  expect(await first).toBe(130);
  expect([await stream.over, stream.done]).toEqual(["broken", false]);
});

test("a terminal that reports its end twice, as to a job of a shell, still lets a stream finish", async () => {
  await using up = await startUp();
  const stream = await begun(up.endpoint);
  const first = up.terminate("SIGHUP");
  await up.logged("stopping");
  expect([await up.terminate("SIGHUP"), await first]).toEqual([0, 0]);
  await expectWhole(stream);
});

test("a client that does not read keeps no process from ending at its deadline", async () => {
  await using up = await startUp({ TRUNKLINE_DRAIN_MS: "500" });
  const unread = await up.endpoint.chat({ model: "scripted", stream: true, says: "/script tokens=35000" });
  expect(unread.status).toBe(200);
  const exit = up.terminate();
  expect(await exit).toBe(0);
  await unread.body?.cancel().catch(() => undefined);
});

test.skipIf(lentOnly("nats", "redis"))("an agent and a gateway of their own finish their streams too", async () => {
  await using fleet = await startFleet({ gateways: 2, machines: { attic: { models: ["scripted"] } } });
  const streams = await Promise.all(fleet.endpoints.map((endpoint) => endpoint.stream(slow)));
  const exits = Promise.all([fleet.agent("attic").terminate(), fleet.gateway.terminate()]);
  for (const stream of streams) await expectWhole(stream);
  expect(await exits).toEqual([0, 0]);
});

test.skipIf(lentOnly("nats", "redis"))(
  "a gateway says that it is not ready before it turns anybody away, and closes its connections gently",
  async () => {
    await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    const exit = fleet.gateway.terminate();
    const ready = async (): Promise<number> => (await fetch(`${fleet.gateway.operationsUrl}/readyz`)).status;
    await until(async () => (await ready()) === 503, { what: "readyz to turn" });
    const served = await fleet.endpoint.chat({ model: "scripted", says: "/script tokens=1" });
    expect([served.status, served.headers.get("connection")]).toEqual([200, "close"]);
    await until(() => turnedAway(fleet.endpoint), { what: "new requests to be turned away after the grace" });
    expect(await exit).toBe(0);
  },
);

test.skipIf(lentOnly("nats", "redis"))(
  "with nothing under way every process ends at once, a gateway after its grace",
  async () => {
    await using fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    await using up = await startUp({ TRUNKLINE_NATS_URL: fleet.nats.url });
    for (const idle of [up, fleet.agent("attic"), ...fleet.gateways]) {
      const toldAtMs = performance.now();
      expect(await idle.terminate()).toBe(0);
      const graceMs = fleet.gateways.some((gateway) => gateway === idle) ? timingAt(1).readinessGraceMs : 0;
      const tookMs = Math.round(performance.now() - toldAtMs) - graceMs;
      expect([idle.title, tookMs]).toEqual([idle.title, expect.toSatisfy(isAtOnce)]);
    }
  },
);

const isAtOnce = (tookMs: number): boolean => tookMs < 1_000;

/** A stopping gateway refuses connections, or answers 503 on one that is open already. */
async function turnedAway(endpoint: Endpoint): Promise<boolean> {
  const response = await endpoint.chat({ model: "scripted", says: "Hello" }).catch(() => undefined);
  await response?.body?.cancel();
  return response === undefined || response.status === 503;
}
