import { afterAll, beforeAll, expect, describe, test } from "vitest";
import { z } from "zod";
import { shownFleetMachine, shownRoute } from "#shared/fleet/shown-fleet.ts";
import { contradictionsMax } from "../../services/gateway/routing/breakers.ts";
import { slotsBelievedMax } from "../../services/gateway/routing/expected-cost.ts";
import { type Endpoint, errorOf, refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";
import { MeanMachine, offering } from "./mean-machine.ts";
import { contentOf, saying } from "../harness/answer-payload.ts";

const slots = 1_000_000;
const named = (id: string): object => ({ ...handMadeModel, id });

describe.skipIf(lentOnly("nats", "redis"))("a machine that announces every model and a million slots", () => {
  let fleet: Fleet;
  let mean: MeanMachine;
  let admin: Endpoint;
  let offered = ["scripted", "mean"];
  let refuses = false;
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 2, machines: { honest: { models: ["scripted"] } } });
    admin = await fleet.admin();
    mean = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "mean",
      presence: () => ({ slots, catalogueDigest: offered.join(" ") }),
      catalogue: () => offering(offered.map(named)),
      answer: () => [
        ["data", saying("mean"), 1],
        ["end", handMadeEnd, 2],
      ],
      refuses: () => refuses,
    });
  });
  afterAll(async () => {
    await mean?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });

  const machines = (...args: string[]) => trunklineHere(["machines", ...args], fleet.keyStore);
  const seen = async (): Promise<z.infer<typeof shownFleetMachine> | undefined> => {
    const { data } = z.object({ data: z.array(shownFleetMachine) }).parse(await (await admin.get("/fleet")).json());
    return data.find(({ machine }) => machine === "mean");
  };
  const routeOf = async (model: string) => {
    const route = shownRoute.parse(await (await admin.get(`/route?model=${model}`)).json());
    return route.machines.find(({ machine }) => machine === "mean");
  };
  const listsEverywhere = async (id: string, wanted: boolean): Promise<boolean> => {
    const lists = await Promise.all(fleet.endpoints.map((endpoint) => endpoint.models()));
    return lists.every(({ ids }) => ids.includes(id) === wanted);
  };
  const chats = (count: number): Promise<string[]> =>
    Promise.all(
      Array.from({ length: count }, async (_, place) => {
        const endpoint = fleet.endpoints[place % 2] ?? fleet.endpoint;
        return (await endpoint.chat({ model: "scripted", says: "/script tokens=1 nonce=x" })).text();
      }),
    );

  test("a machine that announces every model and a million slots is believed without a record, in its models and in no more slots than slotsBelievedMax", async () => {
    await until(() => listsEverywhere("mean", true), { what: "the machine to be listed" });
    const isBounded = async (): Promise<boolean> => (await routeOf("scripted"))?.slots === slotsBelievedMax;
    await until(isBounded, { what: "slotsBelievedMax slots to be believed" });
    expect((await seen())?.why).toBe(`${slotsBelievedMax} of its ${slots} slots are believed (slotsBelievedMax)`);
  });

  test("a machine that announces every model and a million slots that says busy to each job it has read is asked last, and the log and the status tell why", async () => {
    refuses = true;
    const told = (): Promise<string | null | undefined> => seen().then((machine) => machine?.why);
    const isTold = async (): Promise<boolean> => {
      expect(await chats(2)).toEqual([expect.stringContaining("x-0"), expect.stringContaining("x-0")]);
      return (await told())?.includes("said busy though its presence told a free slot") ?? false;
    };
    await until(isTold, { what: "the contradiction to be told", timeoutMs: 20_000, intervalMs: 100 });
    expect((await routeOf("scripted"))?.reason).toBe("contradicts");
    const lines = await fleet.gateway.logLines();
    expect(lines.filter(({ msg }) => msg.includes("said busy again and again"))).toMatchObject([
      { machine: "mean", model: "scripted", contradictionsMax },
    ]);
    // The other gateway learns it by itself.
    const isAvoided = async (): Promise<boolean> => {
      const before = mean.jobs.length;
      await chats(12);
      return mean.jobs.length === before;
    };
    await until(isAvoided, { what: "the machine to be asked last", timeoutMs: 20_000 });
    refuses = false;
  });

  test("a machine that announces every model and a million slots loses all models for which a record permits others, at every gateway at once, and is told why", async () => {
    const { exitCode, out } = await machines("set", "mean", "--models", "other*,mean:tiny");
    expect([exitCode, out]).toEqual([0, "mean may offer other*, mean:tiny\n"]);
    await until(() => listsEverywhere("mean", false), { what: "the models to be withheld" });
    expect(await listsEverywhere("scripted", true)).toBe(true);
    expect(await seen()).toMatchObject({ models: 0, takes_work: false });
    expect((await seen())?.why).toBe("its record does not permit 2 of its models (trunkline machines)");
    expect(await routeOf("scripted")).toMatchObject({ rank: null, reason: "not_permitted" });
    const before = mean.jobs.length;
    expect(await chats(12)).toEqual(Array.from({ length: 12 }, () => expect.stringContaining("x-0")));
    expect((await errorOf(await fleet.endpoint.chat({ model: "mean", says: "hi" }))).code).toBe("agent_offline");
    expect(mean.jobs.length).toBe(before);
  });

  test("a machine that announces every model and a million slots makes no model known that its record does not permit, and offers one that it does", async () => {
    offered = ["made-up", "otherwise"];
    await until(() => listsEverywhere("otherwise", true), { what: "the permitted model to be listed" });
    const isRead = async (): Promise<boolean> =>
      (await seen())?.why?.includes("its record does not permit 1 of its models") ?? false;
    await until(isRead, { what: "the new catalogue to be read" });
    expect(await listsEverywhere("made-up", false)).toBe(true);
    expect((await errorOf(await fleet.endpoint.chat({ model: "made-up", says: "hi" }))).code).toBe("model_not_found");
    expect(await contentOf(await fleet.endpoint.chat({ model: "otherwise", says: "hi" }))).toBe("mean");
  });

  test("a machine that announces every model and a million slots is bounded over the admin API too, which lists the records and names who changed them", async () => {
    const set = await admin.send("PATCH", "/machines/mean", { models: ["made-*"] });
    expect(await set.json()).toMatchObject({ outcome: "changed", machine: "mean", models: ["made-*"] });
    const flipped = async (): Promise<boolean> =>
      (await listsEverywhere("made-up", true)) && (await listsEverywhere("otherwise", false));
    await until(flipped, { what: "the other model to be listed" });
    const list = await (await admin.get("/machines")).json();
    expect(list).toMatchObject({ object: "list", data: [{ machine: "mean", models: ["made-*"] }] });
    const { out } = await trunklineHere(["keys", "log"], fleet.keyStore);
    expect(out).toMatch(/cli .* machine_set +machine +mean +models other\* mean:tiny\n/);
    expect(out).toMatch(/machine_set +machine +mean +models other\* mean:tiny → made-\*\n/);
    const none = refusalOf(admin.send("PATCH", "/machines/mean", { models: [] }));
    expect(await none).toMatchObject({ status: 400, param: "models" });
    expect((await admin.send("DELETE", "/machines/nobody")).status).toBe(404);
  });

  test("a machine that announces every model and a million slots is believed as before when its record is removed", async () => {
    const removed = { exitCode: 0, out: "mean has no record any more\n" };
    expect(await machines("remove", "mean")).toMatchObject(removed);
    await until(() => listsEverywhere("otherwise", true), { what: "all models to be listed" });
    expect((await machines("list")).err).toContain("No machine has a record");
  });
});
