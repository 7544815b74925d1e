import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { shownFleetMachine, type ShownFleetMachine, shownRoute } from "#shared/fleet/shown-fleet.ts";
import { errorOf } from "../harness/endpoint.ts";
import { freePort } from "../harness/free-port.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { trunkline, type CommandResult, type Settings } from "../harness/trunkline-command.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

let fleet: Fleet;
let settings: Settings;
beforeAll(async () => {
  const env = { TRUNKLINE_SLOTS: "2", TRUNKLINE_QUEUE_MAX: "1" };
  const attic = { models: ["scripted", "scripted:vision"], env };
  fleet = await startFleet({ machines: { attic, cellar: { models: ["scripted", "scripted:plain"], env } } });
  await using operator = await Operator.on({ redisUrl: fleet.redis.url });
  const { token } = await operator.issue({ kind: "admin" });
  settings = {
    TRUNKLINE_OPERATIONS_URL: fleet.gateways[0]?.operationsUrl ?? "",
    TRUNKLINE_ADMIN_KEY: token.reveal(),
    TRUNKLINE_STATE_DIR: "/nowhere",
  };
});
afterAll(() => fleet[Symbol.asyncDispose]());

const status = (...args: string[]): Promise<CommandResult> => trunkline(["status", ...args], settings);
const route = (...args: string[]): Promise<CommandResult> => trunkline(["route", ...args], settings);

const fleetAnswer = z.strictObject({
  object: z.literal("list"),
  data: z.array(z.strictObject(shownFleetMachine.shape)),
  problem: z.null(),
  remark: z.null(),
});

async function machines(): Promise<readonly ShownFleetMachine[]> {
  const response = await fetch(`${settings["TRUNKLINE_OPERATIONS_URL"]}/admin/v1/fleet`, {
    headers: { authorization: `Bearer ${settings["TRUNKLINE_ADMIN_KEY"]}` },
  });
  return fleetAnswer.parse(await response.json()).data;
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
  const { exitCode, stdout, stderr } = await status();
  const lines = stdout.replaceAll(/\d\.\d s/g, "0.0 s");
  expect({ exitCode, lines, stderr }).toEqual({
    exitCode: 0,
    lines: [
      "machine  state  runtime   slots  queue  jobs  models  heard  why\n",
      "attic    ready  scripted    0/2    0/1     0       2  0.0 s  -\n",
      "cellar   ready  scripted    0/2    0/1     0       2  0.0 s  -\n",
    ].join(""),
    stderr: "",
  });
});

test("an agent that gets no work is told of with the reason, whatever it is", async () => {
  const nothing = { TRUNKLINE_RUNTIME: "auto", TRUNKLINE_RUNTIME_URL: `http://127.0.0.1:${await freePort()}` };
  await using waiting = await fleet.startAgent("waiting", { env: nothing });
  await using faster = await fleet.startAgent("faster", { env: { TRUNKLINE_TIME_SCALE: "0.5" } });
  await untilShown(waiting.machine, { state: "waiting", why: "no model server answers" });
  await untilShown(faster.machine, { status: "left_out", why: "runs at another TRUNKLINE_TIME_SCALE" });
  const dead = await fleet.startAgent("dead", { models: ["scripted:embed"] });
  await untilShown("dead", { takes_work: true, models: 1 });
  await dead.kill();
  const { why } = await untilShown("dead", { status: "offline", takes_work: false });
  expect(why).toMatch(/^(not heard for \d s|nobody listens on its subject)$/);
  const { stdout, exitCode } = await status();
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/^dead +offline .* (not heard for \d+ s|nobody listens on its subject)$/m);
  expect(stdout).toMatch(/^faster +left out .* runs at another TRUNKLINE_TIME_SCALE$/m);
  expect(stdout).toMatch(/^waiting +waiting +- .* no model server answers$/m);
  await faster.kill();
  await until(async () => !(await machines()).some(({ machine }) => machine === "faster"), {
    what: "a machine that was left out and is gone not to be shown for ever",
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
  const told = await route("scripted:mlx");
  expect([told.exitCode, told.stderr]).toEqual([
    1,
    "trunkline: No machine would take it just now: all their queues are full.\n",
  ]);
  const stopped = shed.terminate();
  await untilShown("shed", {
    state: "draining",
    takes_work: false,
    why: "draining: it finishes its jobs and takes no new one",
  });
  expect(await stream.over).toBe("closed");
  expect(await stopped).toBe(0);
  await untilShown("shed", { status: "offline", why: "has said goodbye" });
});

test("a client that finds all machines full is told when there is room again, as answers there took lately", async () => {
  const env = { TRUNKLINE_SLOTS: "1", TRUNKLINE_QUEUE_MAX: "0" };
  await using _barn = await fleet.startAgent("barn", { models: ["scripted:mlx"], env });
  await untilShown("barn", { takes_work: true, models: 1 });
  const slow = { model: "scripted:mlx", says: "/script tokens=35 delay_ms=100 nonce=a" };
  await fleet.endpoint.answer(slow);
  const stream = await fleet.endpoint.stream(slow);
  const refused = await fleet.endpoint.chat({ model: "scripted:mlx", says: "Hello" });
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "4"]);
  expect((await errorOf(refused)).code).toBe("server_is_overloaded");
  await stream.over;
});

test("a route names the machines in their order, and why the others are not asked", async () => {
  const { exitCode, stdout } = await route("scripted:plain");
  const [heading, first, ...others] = stdout.trimEnd().split("\n");
  expect([exitCode, heading]).toEqual([
    0,
    expect.stringMatching(/^rank {2}machine +free {2}queued +window +cost +first token/),
  ]);
  expect(first).toMatch(/^ +1 {2}cellar +2\/2 +0 +32,768 +- +- +- {2}-$/);
  expect(others).toContainEqual(
    expect.stringMatching(/^ +- {2}attic +2\/2 +0 +- +- +- +- {2}does not offer the model$/),
  );
  const both = shownRoute.parse(JSON.parse((await route("scripted", "--json")).stdout));
  const ranked = both.machines.filter(({ rank }) => rank !== null);
  expect([both.refusal, ranked.map(({ machine }) => machine)]).toEqual([null, ["attic", "cellar"]]);
});

test("a route shows how fast machines were, once they have answered", async () => {
  await fleet.endpoint.answer({ model: "scripted:plain", says: "/script tokens=50 delay_ms=5 nonce=b" });
  const { machines: told } = shownRoute.parse(JSON.parse((await route("scripted:plain", "--json")).stdout));
  const [{ first_token_ms: firstTokenMs, tokens_per_second: perSecond } = {}] = told;
  expect(firstTokenMs).toBeGreaterThanOrEqual(0);
  expect(perSecond).toBeGreaterThan(20);
  expect(perSecond).toBeLessThan(250);
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
    const { exitCode, stderr } = await trunkline(command, nobody);
    expect([exitCode, stderr]).toEqual([69, expect.stringContaining("Nothing listens at")]);
  }
  await using alone = await startFleet({ machines: {} });
  const empty = { ...settings, TRUNKLINE_OPERATIONS_URL: alone.gateways[0]?.operationsUrl ?? "" };
  await using operator = await Operator.on({ redisUrl: alone.redis.url });
  const { token } = await operator.issue({ kind: "admin" });
  const { exitCode, stderr, stdout } = await trunkline(["status"], { ...empty, TRUNKLINE_ADMIN_KEY: token.reveal() });
  expect([exitCode, stdout, stderr]).toEqual([69, "", expect.stringContaining("No machine is there")]);
});
