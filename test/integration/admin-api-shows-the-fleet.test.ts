import packageJson from "../../package.json" with { type: "json" };
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import {
  shownFleetMachine,
  type ShownFleetMachine,
  shownRoute,
  shownRouteMachine,
  type ShownRoute,
} from "#shared/fleet/shown-fleet.ts";
import { Endpoint, errorOf } from "../harness/endpoint.ts";
import { HandMadeAgent, handMadeEnd, handMadeModel, type HandMadeJob } from "../harness/hand-made-agent.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { saying } from "../harness/answer-payload.ts";

let fleet: Fleet;
let admin: Endpoint;
beforeAll(async () => {
  fleet = await startFleet({ machines: { cellar: { models: ["scripted", "scripted:plain"] } } });
  await using operator = await Operator.on({ redisUrl: fleet.redis.url });
  const key = (await operator.issue({ kind: "admin" })).token.reveal();
  admin = new Endpoint({ baseUrl: `${fleet.gateway.operationsUrl}/admin/v1`, key });
});
afterAll(() => fleet[Symbol.asyncDispose]());

const fleetTold = z.strictObject({
  object: z.literal("list"),
  data: z.array(z.strictObject(shownFleetMachine.shape)),
  problem: z.null(),
  remark: z.null(),
});
const routeTold = z.strictObject({
  ...shownRoute.shape,
  machines: z.array(z.strictObject(shownRouteMachine.shape)),
});

async function machinesNamed(machine: string): Promise<readonly ShownFleetMachine[]> {
  const response = await admin.get("/fleet");
  expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
  return fleetTold.parse(await response.json()).data.filter((each) => each.machine === machine);
}

async function route(query: string): Promise<ShownRoute> {
  const response = await admin.get(`/route?${query}`);
  expect(response.status).toBe(200);
  return routeTold.parse(await response.json());
}

async function startMachine(machine: string, model: string, onJob: (job: HandMadeJob) => void): Promise<void> {
  const offered = { ...handMadeModel, id: model };
  const agent = await HandMadeAgent.start({ natsUrl: fleet.nats.url, machine, model: offered, onJob });
  onTestFinished(() => agent[Symbol.asyncDispose]());
  await until(async () => (await machinesNamed(machine)).some(({ models }) => models > 0), {
    what: `${machine} to be known with its model`,
  });
}

test("every machine is told of with its boot, its load, and whether it gets work", async () => {
  const [cellar] = await machinesNamed("cellar");
  expect(cellar).toEqual({
    machine: "cellar",
    epoch: expect.stringMatching(/^\d{13}-[0-9a-z]+$/),
    status: "present",
    state: "ready",
    pairing: null,
    connection: "direct",
    runtime: "scripted",
    slots: expect.any(Number),
    running: 0,
    queued: 0,
    queue_max: expect.any(Number),
    strays: 0,
    memory: {
      total_mb: expect.any(Number),
      free_mb: expect.any(Number),
      disk_free_mb: expect.toBeOneOf([null, expect.any(Number)]),
      models: [],
      loading: null,
      keeps: [],
      pulls: [],
      can_pull: false,
    },
    version: packageJson.version,
    heard_ms_ago: expect.any(Number),
    state_ms_ago: expect.any(Number),
    models: 2,
    open_jobs: 0,
    last_fault: null,
    takes_work: true,
    why: null,
  });
  expect(cellar?.heard_ms_ago).toBeLessThan(2_000);
});

test("the jobs of this gateway are counted where they are, from their placing to their end", async () => {
  const jobs: HandMadeJob[] = [];
  await startMachine("attic", "counted", (job) => void jobs.push(job));
  const asked = fleet.endpoint.chat({ model: "counted", says: "Hello" });
  const [job] = await until(() => jobs.length > 0 && jobs, { what: "the machine to have the job" });
  expect((await machinesNamed("attic"))[0]?.open_jobs).toBe(1);
  job?.say("data", saying("Hello"), 1);
  job?.say("end", handMadeEnd, 2);
  expect((await asked).status).toBe(200);
  expect((await machinesNamed("attic"))[0]?.open_jobs).toBe(0);
});

test("the older of two agents with one name is listed too, with the reason why it gets no work", async () => {
  await startMachine("twin", "twins", () => undefined);
  const [older] = await machinesNamed("twin");
  await startMachine("twin", "twins", () => undefined);
  const both = await until(
    async () => {
      const named = await machinesNamed("twin");
      return named.length === 2 && named;
    },
    { what: "both to be told of" },
  );
  expect(both.find(({ epoch }) => epoch === older?.epoch)).toMatchObject({
    status: "left_out",
    takes_work: false,
    why: "a newer agent of the same name is there (TRUNKLINE_MACHINE)",
  });
  expect(both.find(({ epoch }) => epoch !== older?.epoch)).toMatchObject({ status: "present", takes_work: true });
});

test("a route says of every machine whether it is asked, in which place, and why not", async () => {
  const { machines, ...about } = await route("model=scripted:plain&prompt_tokens=1000000");
  expect(about).toEqual({ object: "route", model: "scripted:plain", targets: null, refusal: null });
  expect(machines[0]).toMatchObject({
    machine: "cellar",
    rank: 1,
    reason: "small_window",
    why: "its window of 32,768 tokens may be too small for the prompt",
    context_window: 32_768,
    has_room: true,
  });
  const [cellar, ...others] = (await route("model=scripted:plain&vision=true")).machines;
  expect(cellar).toMatchObject({ machine: "cellar", rank: null, reason: "unable" });
  for (const { rank, reason } of others)
    expect([rank, reason]).toEqual([null, expect.stringMatching(/^(no_model|offline)$/)]);
});

test.each([
  ["model=scripted:plain&tools=true", "model_does_not_support_tools"],
  ["model=scripted:plain&kind=embed", "unsupported_value"],
  ["model=never-heard-of", "model_not_found"],
])("a route that leads nowhere tells what a request would end in: %s", async (query, code) => {
  const { refusal, machines } = await route(query);
  expect(refusal).toEqual({ code, message: expect.stringMatching(/.{20}/) });
  expect(machines.every(({ rank }) => rank === null)).toBe(true);
});

test("a wrong question about the fleet is 400 with the part that is wrong", async () => {
  const wrong: [string, string, string][] = [
    ["/route", "missing_required_parameter", "model"],
    ["/route?model=", "invalid_value", "model"],
    ["/route?model=a&kind=manage", "invalid_value", "kind"],
    ["/route?model=a&tools=perhaps", "invalid_value", "tools"],
    ["/route?model=a&prompt_tokens=many", "invalid_type", "prompt_tokens"],
    ["/route?model=a&force=true", "unsupported_parameter", "force"],
    ["/fleet?machine=attic", "unsupported_parameter", "machine"],
  ];
  for (const [path, code, param] of wrong) {
    const response = await admin.get(path);
    expect([path, response.status, await errorOf(response)]).toMatchObject([path, 400, { code, param }]);
  }
});
