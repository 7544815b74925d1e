import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { type Endpoint, errorOf, refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { issueKey } from "../harness/trunkline-command.ts";
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
const says = "/script tokens=1";

describe.skipIf(lentOnly("nats", "redis"))("two gateways and three machines, on one NATS and one Redis", () => {
  let fleet: Fleet;
  /** With a key that is bound to the attic. */
  let bound: Endpoint;
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 2, machines });
    bound = fleet.endpoint.withKey((await issueKey(fleet.keyStore, "--machines", "attic")).key);
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  const each = <T>(ask: (endpoint: Endpoint) => Promise<T>): Promise<T[]> => Promise.all(fleet.endpoints.map(ask));

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

  const input = Array.from({ length: 2_048 }, (_, at) => `text ${at}`);

  test("the vectors of as many texts as may be sent with 4,096 numbers each cross the broker whole and in order", async () => {
    const fields = { model: "scripted:embed", input, dimensions: 4_096, encoding_format: "base64" };
    const response = await fleet.endpoint.embed(fields);
    expect(response.status).toBe(200);
    const list = z.object({ data: z.array(z.object({ index: z.int(), embedding: z.base64() })) });
    const { data } = list.parse(await response.json());
    expect(data.map(({ index }) => index)).toEqual(input.map((_, at) => at));
    expect(data.every(({ embedding }) => Buffer.from(embedding, "base64").length === 4_096 * 4)).toBe(true);
  });

  test("vectors that are longer than an answer may be are refused by the name of the limit, and others go on", async () => {
    const fields = { model: "scripted:embed", input, dimensions: 4_096, encoding_format: "float" };
    expect(await refusalOf(fleet.endpoint.embed(fields))).toMatchObject({
      status: 400,
      message: expect.stringMatching(/embeddingsCharactersMax.*fewer texts.*base64/),
      param: "input",
    });
    expect((await fleet.endpoint.embed({ ...fields, input: "one" })).status).toBe(200);
  });

  test("a key that is bound to a machine sees the models of its machine", async () => {
    expect((await bound.models()).ids).toEqual(["scripted", "scripted:plain"]);
  });

  test("a key that is bound to a machine is answered by it alone, also for what another machine offers", async () => {
    const asked = 10;
    const used = new Set<string | null>();
    for (let time = 0; time < asked; time += 1) {
      const response = await bound.chat({ model: "scripted:plain", says });
      expect((await response.text()).includes("token-0 ")).toBe(true);
      used.add(response.headers.get("x-trunkline-machine"));
    }
    expect(used).toEqual(new Set(["attic"]));
  });

  test("a key that is bound to a machine is told of another one's model what it is told of one that nobody has", async () => {
    const other = await bound.chat({ model: "scripted:vision", says });
    const absent = await bound.chat({ model: "scripted:nowhere", says });
    expect([other.status, absent.status]).toEqual([404, 404]);
    const told = JSON.stringify(await errorOf(other));
    expect(told.replaceAll("vision", "nowhere")).toBe(JSON.stringify(await errorOf(absent)));
    expect((await bound.get("/models/scripted:vision")).status).toBe(404);
  });

  test("a key that is bound to a machine is told that it is away, while another one serves everybody else", async () => {
    await fleet.agent("attic").kill();
    const away = async (): Promise<boolean> => (await bound.models()).code === "agent_offline";
    await until(away, { what: "the machine to be away" });
    const chat = await bound.chat({ model: "scripted:plain", says });
    expect(await refusalOf(chat)).toMatchObject({ status: 503, code: "agent_offline" });
    expect((await bound.chat({ model: "scripted:vision", says })).status).toBe(404);
    expect(await fleet.endpoint.answer({ model: "scripted:plain", says })).toBe("token-0 ");
  });

  test("two gateways and three machines, on one NATS and one Redis, with every machine stopped it is 503 agent_offline, and one that starts again heals it", async () => {
    expect(await fleet.agent("desk").terminate()).toBe(0);
    expect(await fleet.agent("cellar").terminate()).toBe(0);
    const listings = () => each((endpoint) => endpoint.models());
    const allOffline = async () => (await listings()).every(({ code }) => code === "agent_offline");
    await until(allOffline, { what: "agent_offline", timeoutMs: atOnceMs });
    expect((await listings()).map(({ status }) => status)).toEqual([503, 503]);
    for (const chat of await each((endpoint) => endpoint.chat({ model: "scripted:plain", says }))) {
      expect(await refusalOf(chat)).toMatchObject({ status: 503, code: "agent_offline" });
    }
    for (const chat of await each((endpoint) => endpoint.chat({ model: "never-heard-of", says }))) {
      expect(await refusalOf(chat)).toMatchObject({ status: 404, code: "model_not_found" });
    }

    await fleet.startAgent("desk", machines.desk);
    const healed = async () =>
      (await listings()).every(({ status, ids }) => status === 200 && ids.includes("scripted:mlx"));
    await until(healed, { what: "the machine that is back", timeoutMs: healsWithinMs });
    const answers = await each((endpoint) => endpoint.answer({ model: "scripted:mlx", says }));
    expect(answers).toEqual(["token-0 ", "token-0 "]);
  });
});
