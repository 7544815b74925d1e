import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { errorIn, errorOf } from "../harness/endpoint.ts";
import type { EventStream } from "../harness/event-stream.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { launchTrunkline, trunkline, type CommandResult, type Settings } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

let fleet: Fleet;
let settings: Settings;
beforeAll(async () => {
  const env = { TRUNKLINE_SLOTS: "4" };
  fleet = await startFleet({ gateways: 2, machines: { attic: { models: ["scripted"], env } } });
  settings = { ...(await fleet.operatorSettings()), ...fleet.keyStore };
});
afterAll(() => fleet[Symbol.asyncDispose]());

const machines = (...args: string[]): Promise<CommandResult> => trunkline(["machines", ...args], settings);
const long = { model: "scripted", says: "/script tokens=2000 delay_ms=20" };

/** A stream at each gateway, both of them begun. */
async function streamsEverywhere(): Promise<readonly EventStream[]> {
  const streams = await Promise.all(fleet.endpoints.map((endpoint) => endpoint.stream(long)));
  for (const stream of streams) await until(() => stream.text !== "", { what: "the stream to begin" });
  return streams;
}

async function untilServed(wanted: boolean): Promise<void> {
  const served = async (): Promise<boolean> => {
    const answers = await Promise.all(fleet.endpoints.map((each) => each.chat({ model: "scripted", says: "Hello" })));
    for (const answer of answers) await answer.body?.cancel();
    return answers.every(({ status }) => (status === 200) === wanted);
  };
  await until(served, { what: `every gateway to have ${wanted ? "a" : "no"} machine`, timeoutMs: 10_000 });
}

beforeEach(async () => {
  await machines("models", "attic", "--models", "*");
  await machines("uncordon", "attic");
  await untilServed(true);
});

test("a cordoned machine finishes its streams and gets no new ones, and status and route tell the reason", async () => {
  const [endpoint] = fleet.endpoints;
  const stream = await endpoint?.stream({ model: "scripted", says: "/script tokens=60 delay_ms=50" });
  expect((await machines("cordon", "attic", "--reason", "new fans")).exitCode).toBe(0);
  await untilServed(false);
  expect(await errorOf((await endpoint?.chat({ model: "scripted", says: "Hello" })) ?? new Response())).toMatchObject({
    code: "agent_offline",
    message: expect.stringContaining("cordoned"),
  });
  expect((await trunkline(["status"], settings)).stdout).toMatch(/attic +cordoned .* cordoned: new fans/);
  expect((await trunkline(["route", "scripted"], settings)).stdout).toContain("trunkline machines uncordon");
  await stream?.over;
  expect(stream?.done).toBe(true);
});

test("a drain waits for the last job of all gateways and says how many are left", async () => {
  const [one, other] = await Promise.all(
    fleet.endpoints.map((endpoint) => endpoint.stream({ model: "scripted", says: "/script tokens=100 delay_ms=50" })),
  );
  for (const stream of [one, other]) await until(() => stream?.text !== "", { what: "the stream to begin" });
  const { exitCode, stdout, stderr } = await machines("drain", "attic");
  expect([one?.done, other?.done]).toEqual([true, true]);
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: "attic has no job and gets no new one; `trunkline machines uncordon attic` gives it jobs again\n",
  });
  expect(stderr).toMatch(/^attic: [12] running, 0 waiting\n/);
  await untilServed(false);
});

test("a drain that is interrupted leaves the machine cordoned and says so", async () => {
  const streams = await streamsEverywhere();
  await using child = await launchTrunkline(["machines", "drain", "attic"], settings);
  await until(async () => (await child.stderr()).includes("running"), { what: "the drain to wait" });
  child.signal("SIGINT");
  expect(String(await child.exit())).toBe("130");
  expect(await child.stderr()).toContain("Interrupted: attic stays cordoned.");
  expect((await machines("list")).stdout).toMatch(/attic +cordoned/);
  expect(streams.map(({ done }) => done)).toEqual([false, false]);
  for (const { response } of streams) await response.body?.cancel().catch(() => undefined);
});

test("a revoked machine loses its streams within a second at every gateway, as told faults, and is not believed again", async () => {
  const streams = await streamsEverywhere();
  expect((await machines("revoke", "attic")).exitCode).toBe(0);
  const revokedAtMs = performance.now();
  await Promise.all(streams.map(({ over }) => over));
  expect(performance.now() - revokedAtMs).toBeLessThan(1_000);
  for (const { events } of streams) expect(errorIn(events.at(-1) ?? "").code).toBe("agent_offline");
  await untilServed(false);
  const status = async (): Promise<string> => (await trunkline(["status"], settings)).stdout;
  await until(async () => /attic +revoked .* was revoked, but is still connected/.test(await status()), {
    what: "the machine that goes on announcing itself to be left out",
  });
  expect((await trunkline(["route", "scripted"], settings)).stdout).toMatch(/ - +attic .* was revoked/);
  await machines("remove", "attic");
});
