import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { shownFleetMachine, type ShownFleetMachine, shownRoute } from "#shared/fleet/shown-fleet.ts";
import { freePort } from "../harness/free-port.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import type { Settings } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

let fleet: Fleet;
let settings: Settings;
let admin: Endpoint;
beforeAll(async () => {
  const env = { TRUNKLINE_SLOTS: "2", TRUNKLINE_QUEUE_MAX: "1" };
  const attic = { models: ["scripted", "scripted:vision"], env };
  fleet = await startFleet({ machines: { attic, cellar: { models: ["scripted", "scripted:plain"], env } } });
  [settings, admin] = await Promise.all([fleet.operatorSettings(), fleet.admin()]);
});
afterAll(() => fleet[Symbol.asyncDispose]());

const run = (...args: string[]) => trunklineHere(args, settings);

const fleetAnswer = z.strictObject({
  object: z.literal("list"),
  data: z.array(z.strictObject(shownFleetMachine.shape)),
  problem: z.null(),
  remark: z.null(),
});

async function machines(): Promise<readonly ShownFleetMachine[]> {
  return fleetAnswer.parse(await (await admin.get("/fleet")).json()).data;
}

function untilShown(machine: string, wanted: Partial<ShownFleetMachine>): Promise<ShownFleetMachine> {
  const fits = (each: ShownFleetMachine): boolean =>
    each.machine === machine && Object.entries(wanted).every(([field, value]) => Reflect.get(each, field) === value);
  return until(async () => (await machines()).find(fits), {
    what: `${machine} to be shown with ${JSON.stringify(wanted)}`,
    timeoutMs: 10_000,
  });
}

test("a fleet is a table that lines up, with every machine and its load", async () => {
  const { out, ...rest } = await run("status");
  expect({ out: out.replaceAll(/\d\.\d s/g, "0.0 s"), ...rest }).toEqual({
    exitCode: 0,
    out: [
      "machine  state  runtime   slots  queue  jobs  models  heard  why\n",
      "attic    ready  scripted    0/2    0/1     0       2  0.0 s  -\n",
      "cellar   ready  scripted    0/2    0/1     0       2  0.0 s  -\n",
    ].join(""),
    err: "",
  });
});

test("a machine whose queue is full, and one that is about to stop, say so while their streams run", async () => {
  await using shed = await fleet.startAgent("shed", {
    models: ["scripted:mlx"],
    env: { TRUNKLINE_SLOTS: "1", TRUNKLINE_QUEUE_MAX: "0" },
  });
  await untilShown("shed", { takes_work: true, models: 1 });
  const stream = await fleet.endpoint.stream({ model: "scripted:mlx", says: "/script tokens=400 delay_ms=10 nonce=a" });
  expect(await untilShown("shed", { open_jobs: 1, running: 1 })).toMatchObject({ why: "its queue is full" });
  expect(await run("route", "scripted:mlx")).toMatchObject({
    exitCode: 1,
    err: "trunkline: No machine would take it just now: all their queues are full.\n",
  });
  const stopped = shed.terminate();
  const why = "draining: it finishes its jobs and takes no new one";
  await untilShown("shed", { state: "draining", takes_work: false, why });
  expect(await stream.over).toBe("closed");
  expect(await stopped).toBe(0);
  await untilShown("shed", { status: "offline", why: "has said goodbye" });
});

test("a route names the machines in their order, and why the others are not asked", async () => {
  const { exitCode, out } = await run("route", "scripted:plain");
  const [heading, first, ...others] = out.trimEnd().split("\n");
  expect(exitCode).toBe(0);
  expect(heading).toMatch(/^rank {2}machine +free {2}queued +window +cost +first token/);
  expect(first).toMatch(/^ +1 {2}cellar +2\/2 +0 +32,768 +- +- +- {2}-$/);
  expect(others).toContainEqual(
    expect.stringMatching(/^ +- {2}attic +2\/2 +0 +- +- +- +- {2}does not offer the model$/),
  );
  const both = shownRoute.parse(JSON.parse((await run("route", "scripted", "--json")).out));
  const ranked = both.machines.filter(({ rank }) => rank !== null);
  expect([both.refusal, ranked.map(({ machine }) => machine)]).toEqual([null, ["attic", "cellar"]]);
});

test("--watch shows the fleet again and again, and goes on when a machine leaves", async () => {
  await using watch = await TrunklineProcess.start({ args: ["status", "--watch"], settings });
  await watch.printed(/attic +ready/);
  await using guest = await fleet.startAgent("guest", { models: ["scripted:embed"] });
  await watch.printed(/guest +ready/);
  await guest.terminate();
  await watch.printed(/guest +offline .* has said goodbye/);
  expect(await watch.stdout()).not.toContain("\u001b");
  expect(await watch.terminate("SIGINT")).toBe(0);
  expect(await watch.stderr()).toBe("");
});

test("without a machine that is ready, and without a gateway, the exit code is 69", async () => {
  const nobody = { ...settings, TRUNKLINE_OPERATIONS_URL: `http://127.0.0.1:${await freePort()}` };
  for (const command of [["status"], ["status", "--watch"], ["route", "scripted"]]) {
    const told = await trunklineHere(command, nobody);
    expect(told).toMatchObject({ exitCode: 69, err: expect.stringContaining("Nothing listens at") });
  }
  await using alone = await startFleet({ machines: {} });
  const told = await trunklineHere(["status"], await alone.operatorSettings());
  expect(told).toEqual({ exitCode: 69, out: "", err: expect.stringContaining("No machine is there") });
});
