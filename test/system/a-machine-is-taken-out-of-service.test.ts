import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { errorIn, refusalOf } from "../harness/endpoint.ts";
import type { EventStream } from "../harness/event-stream.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { launchTrunkline, type Settings } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";

let fleet: Fleet;
let settings: Settings;
beforeAll(async () => {
  const env = { TRUNKLINE_SLOTS: "4" };
  fleet = await startFleet({ gateways: 2, machines: { attic: { models: ["scripted"], env } } });
  settings = { ...(await fleet.operatorSettings()), ...fleet.keyStore };
});
afterAll(() => fleet[Symbol.asyncDispose]());

const run = (...args: string[]) => trunklineHere(args, settings);
const machines = (...args: string[]) => run("machines", ...args);

/** A stream at each gateway, both of them begun. */
async function streamsEverywhere(script = "tokens=2000 delay_ms=20"): Promise<readonly EventStream[]> {
  const fields = { model: "scripted", says: `/script ${script}` };
  const streams = await Promise.all(fleet.endpoints.map((endpoint) => endpoint.stream(fields)));
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
  const stream = await fleet.endpoint.stream({ model: "scripted", says: "/script tokens=60 delay_ms=50" });
  expect((await machines("cordon", "attic", "--reason", "new fans")).exitCode).toBe(0);
  await untilServed(false);
  const refused = await refusalOf(fleet.endpoint.chat({ model: "scripted", says: "Hello" }));
  expect(refused).toMatchObject({ code: "agent_offline", message: expect.stringContaining("cordoned") });
  expect((await run("status")).out).toMatch(/attic +cordoned .* cordoned: new fans/);
  expect((await run("route", "scripted")).out).toContain("trunkline machines uncordon");
  await stream.over;
  expect(stream.done).toBe(true);
});

test("a drain waits for the last job of all gateways and says how many are left", async () => {
  const streams = await streamsEverywhere("tokens=100 delay_ms=50");
  expect(await machines("drain", "attic")).toEqual({
    exitCode: 0,
    out: "attic has no job and gets no new one; `trunkline machines uncordon attic` gives it jobs again\n",
    err: expect.stringMatching(/^attic: [12] running, 0 waiting\n/),
  });
  expect(streams.map(({ done }) => done)).toEqual([true, true]);
  await untilServed(false);
});

test("a drain that is interrupted leaves the machine cordoned and says so", async () => {
  const streams = await streamsEverywhere();
  await using child = await launchTrunkline(["machines", "drain", "attic"], settings);
  await until(async () => (await child.stderr()).includes("running"), { what: "the drain to wait" });
  child.signal("SIGINT");
  expect(String(await child.exit())).toBe("130");
  expect(await child.stderr()).toContain("Interrupted: attic stays cordoned.");
  expect((await machines("list")).out).toMatch(/attic +cordoned/);
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
  await until(async () => /attic +revoked .* was revoked, but is still connected/.test((await run("status")).out), {
    what: "the machine that goes on announcing itself to be left out",
  });
  expect((await run("route", "scripted")).out).toMatch(/ - +attic .* was revoked/);
  await machines("remove", "attic");
});
