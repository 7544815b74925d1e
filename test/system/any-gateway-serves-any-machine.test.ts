import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

/** What a caller may take for «at once» when processes share two cores with other tests. */
const atOnceMs = 1_000;
const healsWithinMs = 2_000;

const union = ["scripted", "scripted:embed", "scripted:mlx", "scripted:plain", "scripted:vision"];
const machines = {
  attic: { models: ["scripted", "scripted:plain"] },
  cellar: { models: ["scripted:vision", "scripted:plain"] },
  desk: { models: ["scripted:mlx", "scripted:embed"] },
};

describe.skipIf(lentOnly("nats", "redis"))("two gateways and three machines, on one NATS and one Redis", () => {
  let fleet: Fleet;
  beforeAll(async () => void (fleet = await startFleet({ gateways: 2, machines })));
  afterAll(() => fleet[Symbol.asyncDispose]());

  const each = <T>(ask: (endpoint: Fleet["endpoints"][number]) => Promise<T>): Promise<T[]> =>
    Promise.all(fleet.endpoints.map(ask));

  test("each gateway lists the union, each model once, and serves every machine, whole and streamed", async () => {
    for (const endpoint of fleet.endpoints) {
      expect(await endpoint.models()).toEqual({ status: 200, ids: union, code: undefined, unanswered: null });
      for (const model of ["scripted", "scripted:vision", "scripted:mlx"]) {
        expect(await endpoint.answer({ model, says: "/script tokens=2 nonce=x" })).toBe("x-0 x-1 ");
        const stream = await endpoint.stream({ model, says: "/script tokens=2 nonce=x" });
        await stream.over;
        expect([stream.text, stream.done]).toEqual(["x-0 x-1 ", true]);
      }
    }
  });

  test("two gateways and three machines, on one NATS and one Redis, with every machine stopped it is 503 agent_offline, and one that starts again heals it", async () => {
    expect(await fleet.agent("desk").terminate()).toBe(0);
    expect(await fleet.agent("attic").terminate()).toBe(0);
    expect(await fleet.agent("cellar").terminate()).toBe(0);
    const listings = () => each((endpoint) => endpoint.models());
    const allOffline = async () => (await listings()).every(({ code }) => code === "agent_offline");
    await until(allOffline, { what: "agent_offline", timeoutMs: atOnceMs });
    expect((await listings()).map(({ status }) => status)).toEqual([503, 503]);
    for (const chat of await each((endpoint) => endpoint.chat({ model: "scripted:plain", says: "Hello" }))) {
      expect([chat.status, (await errorOf(chat)).code]).toEqual([503, "agent_offline"]);
    }
    for (const chat of await each((endpoint) => endpoint.chat({ model: "never-heard-of", says: "Hello" }))) {
      expect([chat.status, (await errorOf(chat)).code]).toEqual([404, "model_not_found"]);
    }

    await fleet.startAgent("desk", machines.desk);
    const healed = async () =>
      (await listings()).every(({ status, ids }) => status === 200 && ids.includes("scripted:mlx"));
    await until(healed, { what: "the machine that is back", timeoutMs: healsWithinMs });
    const answers = await each((endpoint) => endpoint.answer({ model: "scripted:mlx", says: "/script tokens=1" }));
    expect(answers).toEqual(["token-0 ", "token-0 "]);
  });
});
