import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { fleetListing, type ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { type Fleet, startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

/** Answers last several times as long as gateways gather their placements. */
const answer = "/script tokens=6 delay_ms=40";
const longWords = (of: string): string => `nonce=${of}\n${`The long words of ${of}. `.repeat(200)}`;
const prompts = 16;
const conversations = 12;
const burst = 60;

describe.skipIf(lentOnly("nats", "redis"))("two gateways and two machines", () => {
  let fleet: Fleet;
  let admin: Endpoint;
  beforeAll(async () => {
    const machine = { models: ["scripted"], env: { TRUNKLINE_SLOTS: "8", TRUNKLINE_QUEUE_MAX: "100" } };
    const gatewayEnv = { TRUNKLINE_STORE_RESPONSES: "on" };
    fleet = await startFleet({ gateways: 2, machines: { attic: machine, cellar: machine }, gatewayEnv });
    admin = await fleet.admin();
  });
  afterAll(() => fleet?.[Symbol.asyncDispose]());

  async function told<T>(of: (machine: ShownFleetMachine) => T): Promise<T[]> {
    return fleetListing.parse(await (await admin.get("/fleet")).json()).data.map(of);
  }

  const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);

  /** The machines count all jobs, and no presence is under way that does not. */
  const untilTold = (jobs: number): Promise<boolean> =>
    until(async () => sum(await told(({ running, queued }) => running + queued)) === jobs, {
      what: `the machines to tell that they have ${jobs} jobs`,
    });

  // They come first: what machines have cached from other tests draws requests to them.
  test.each([1, 2, 3])("burst %i spreads evenly, though machines tell their load only once a second", async () => {
    const leaving = new AbortController();
    const asked = Array.from({ length: burst }, (_, request) => {
      const says = `/script tokens=1000 delay_ms=20 nonce=n${request}`;
      return fleet.endpoint.chat({ model: "scripted", says, stream: true }, leaving.signal).catch(() => undefined);
    });
    const placed = async (): Promise<number[] | false> => {
      const open = await told(({ open_jobs: jobs }) => jobs);
      return sum(open) === burst && open;
    };
    const [attic = 0, cellar = 0] = await until(placed, { what: "all of them to be placed" });
    await untilTold(burst);
    leaving.abort();
    await Promise.all(asked);
    expect(Math.abs(attic - cellar)).toBeLessThanOrEqual(2);
    await untilTold(0);
  });

  const gatewayAt = (place: number): Endpoint => fleet.endpoints[place % 2] ?? fleet.endpoint;

  async function answered(endpoint: Endpoint, path: string, fields: object) {
    const response = await endpoint.post(path, { model: "scripted", ...fields });
    const { id } = z.looseObject({ id: z.string() }).parse(await response.json());
    return { id, machine: response.headers.get("x-trunkline-machine") };
  }

  test("a gateway finds a prompt again on the machine where the other gateway placed it", async () => {
    const used = new Set<string | null>();
    let found = 0;
    for (let prompt = 0; prompt < prompts; prompt += 1) {
      const messages = [{ role: "user", content: `${answer} ${longWords(`prompt-${prompt}`)}` }];
      const { machine } = await answered(gatewayAt(prompt), "/chat/completions", { messages });
      used.add(machine);
      if ((await answered(gatewayAt(prompt + 1), "/chat/completions", { messages })).machine === machine) found += 1;
    }
    expect(found).toBeGreaterThanOrEqual(prompts - 1);
    expect(used.size).toBe(2);
  });

  test("a turn that names only the one before goes to its machine, which has cached the conversation", async () => {
    const names = ["on-attic", "on-cellar"];
    for (const machine of ["attic", "cellar"])
      await admin.send("PUT", `/routes/on-${machine}`, { targets: [{ model: "scripted", machines: [machine] }] });
    await gatewayAt(0).untilListed(...names);
    const used = new Set<string | null>();
    let found = 0;
    for (let at = 0; at < conversations; at += 1) {
      const input = `${answer} ${longWords(`conversation-${at}`)}`;
      // The first turn goes to each machine in its turn, whichever looks faster.
      const { id, machine } = await answered(gatewayAt(0), "/responses", { model: names[at % 2], input });
      used.add(machine);
      const next = { previous_response_id: id, input: "/script tokens=1" };
      if ((await answered(gatewayAt(1), "/responses", next)).machine === machine) found += 1;
    }
    expect(found).toBeGreaterThanOrEqual(conversations - 1);
    expect(used.size).toBe(2);
  });
});
