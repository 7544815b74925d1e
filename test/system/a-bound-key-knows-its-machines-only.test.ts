import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Endpoint } from "../harness/endpoint.ts";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

describe.skipIf(lentOnly("nats", "redis"))("a key that is bound to one of two machines", () => {
  let fleet: Fleet;
  let bound: Endpoint;
  beforeAll(async () => {
    const machines = {
      attic: { models: ["scripted", "scripted:plain"] },
      cellar: { models: ["scripted:plain", "scripted:vision"] },
    };
    fleet = await startFleet({ machines });
    const issued = await trunkline(
      ["keys", "issue", "--name", "bound", "--machines", "attic", "--json"],
      fleet.keyStore,
    );
    bound = fleet.endpoint.withKey(JSON.parse(issued.stdout).key);
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  const says = "/script tokens=1";

  test("a key that is bound to one of two machines sees the models of its machine, and every other key sees those of both", async () => {
    expect((await bound.models()).ids).toEqual(["scripted", "scripted:plain"]);
    expect((await fleet.endpoint.models()).ids).toEqual(["scripted", "scripted:plain", "scripted:vision"]);
  });

  test("a key that is bound to one of two machines is answered by its machine alone, also for what both offer", async () => {
    const asked = 10;
    for (let time = 0; time < asked; time += 1) await bound.answer({ model: "scripted:plain", says });
    const [gateway] = fleet.gateways;
    const machines = async () => {
      const lines = (await gateway?.logLines()) ?? [];
      const used = lines.filter(({ msg, model }) => msg === "request" && model === "scripted:plain");
      return used.length === asked && used.map(({ machine }) => machine);
    };
    expect(new Set(await until(machines, { what: "the lines of all requests" }))).toEqual(new Set(["attic"]));
  });

  test("a key that is bound to one of two machines is told of another machine's model what it is told of one that does not exist", async () => {
    const [other, absent] = [
      await bound.chat({ model: "scripted:vision", says }),
      await bound.chat({ model: "scripted:nowhere", says }),
    ];
    expect([other.status, absent.status]).toEqual([404, 404]);
    const told = JSON.stringify(await errorOf(other));
    expect(told.replaceAll("vision", "nowhere")).toBe(JSON.stringify(await errorOf(absent)));
    expect((await bound.get("/models/scripted:vision")).status).toBe(404);
  });

  test("a key that is bound to one of two machines is told that its machine is away, while the other one serves everybody else", async () => {
    await fleet.agent("attic").kill();
    const away = async (): Promise<boolean> => (await bound.models()).code === "agent_offline";
    await until(away, { what: "the machine to be away" });
    const chat = await bound.chat({ model: "scripted:plain", says });
    expect([chat.status, (await errorOf(chat)).code]).toEqual([503, "agent_offline"]);
    expect((await bound.chat({ model: "scripted:vision", says })).status).toBe(404);
    expect(await fleet.endpoint.answer({ model: "scripted:plain", says })).toBe("token-0 ");
  });
});
