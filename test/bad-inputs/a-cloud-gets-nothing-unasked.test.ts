import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { contentOf, saying } from "../harness/answer-payload.ts";
import { Endpoint, errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { handMadeEnd, handMadeModel } from "../harness/hand-made-agent.ts";
import { Operator } from "../harness/operator.ts";
import { type Fleet, startFleet } from "../harness/start-fleet.ts";
import { type CommandResult, trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";
import { MeanMachine, offering } from "./mean-machine.ts";

describe.skipIf(lentOnly("nats", "redis"))("a machine whose models run elsewhere", () => {
  let fleet: Fleet;
  let cloud: MeanMachine;
  const run = async (...args: string[]): Promise<CommandResult> => {
    const result = await trunkline(args, fleet.keyStore);
    expect(result.exitCode, result.stderr).toBe(0);
    return result;
  };
  const issue = async (terms: {
    readonly external?: true;
    readonly scopes?: string[];
    readonly machines?: string[];
  }) => {
    await using operator = await Operator.on({ redisUrl: fleet.redis.url });
    const { token, record } = await operator.issue(terms);
    const key = token.reveal();
    return { id: record.id, endpoints: fleet.gateways.map(({ baseUrl }) => new Endpoint({ baseUrl, key })) };
  };
  /** The outcome of a chat at each gateway: what answered, or the code of the error. */
  const chats = (endpoints: readonly Endpoint[], model: string): Promise<readonly string[]> =>
    Promise.all(
      endpoints.map(async (endpoint) => {
        const response = await endpoint.chat({ model, says: "/script tokens=1 nonce=home" });
        if (response.status !== 200) return (await errorOf(response)).code ?? "";
        return String(await contentOf(response)).startsWith("home") ? "home" : "cloud";
      }),
    );
  const lists = (endpoints: readonly Endpoint[]): Promise<readonly string[]> =>
    Promise.all(endpoints.map(async (endpoint) => (await endpoint.models()).ids.join(" ")));
  const twice = (outcome: string): readonly string[] => [outcome, outcome];

  beforeAll(async () => {
    fleet = await startFleet({ gateways: 2, machines: { attic: { models: ["scripted"] } } });
    await run("machines", "external", "cloud");
    cloud = await MeanMachine.start({
      natsUrl: fleet.nats.url,
      machine: "cloud",
      presence: () => ({ slots: 64 }),
      catalogue: () => offering(["scripted", "large"].map((id) => ({ ...handMadeModel, id }))),
      answer: () => [
        ["data", saying("far away"), 1],
        ["end", handMadeEnd, 2],
      ],
    });
    await run("routes", "set", "best", "large external");
    await run("routes", "set", "near", "scripted", "--then", "scripted external");
    await run("routes", "set", "named", "large on cloud");
    const may = await issue({ external: true });
    await until(async () => (await lists(may.endpoints)).every((ids) => ids === "best near scripted"), {
      what: "the cloud and its routes to be known",
    });
  });
  afterAll(async () => {
    await cloud?.[Symbol.asyncDispose]();
    await fleet?.[Symbol.asyncDispose]();
  });

  test("a machine whose models run elsewhere answers for a route that says so and a key that was issued for it, and is named as the one that spoke", async () => {
    const { endpoints } = await issue({ external: true });
    const before = cloud.jobs.length;
    expect(await chats(endpoints, "best")).toEqual(twice("cloud"));
    expect(cloud.jobs.length).toBe(before + 2);
    const response = await endpoints[0]?.chat({ model: "best", says: "Hi" });
    const { headers } = response ?? {};
    expect([headers?.get("x-trunkline-model"), headers?.get("x-trunkline-machine")]).toEqual(["large", "cloud"]);
    expect(await response?.json()).toMatchObject({ model: "best" });
  });

  test("a machine whose models run elsewhere answers nothing else, is in no list, and its models are as unknown as ones that nobody has", async () => {
    const before = cloud.jobs.length;
    const [plain, may, bound] = await Promise.all([
      issue({}),
      issue({ external: true }),
      issue({ machines: ["cloud"], scopes: ["large", "scripted"] }),
    ]);
    for (const { endpoints } of [plain, may]) {
      expect(await chats(endpoints, "scripted")).toEqual(twice("home"));
      expect(await chats(endpoints, "large")).toEqual(twice("model_not_found"));
      expect(await chats(endpoints, "named")).toEqual(twice("model_not_found"));
      expect((await endpoints[0]?.get("/models/large"))?.status).toBe(404);
    }
    expect(await chats(plain.endpoints, "best")).toEqual(twice("model_not_found"));
    expect(await lists(plain.endpoints)).toEqual(twice("near scripted"));
    expect(await chats(bound.endpoints, "large")).toEqual(twice("model_not_found"));
    expect(await chats(bound.endpoints, "scripted")).toEqual(twice("model_not_found"));
    expect((await bound.endpoints[0]?.models())?.code).toBe("agent_offline");
    expect(cloud.jobs.length).toBe(before);
  });

  test("a machine whose models run elsewhere is shown to operators with the requests that may lead there", async () => {
    await using operator = await Operator.on({ redisUrl: fleet.redis.url });
    const TRUNKLINE_ADMIN_KEY = (await operator.issue({ kind: "viewer" })).token.reveal();
    const TRUNKLINE_OPERATIONS_URL = fleet.gateway.operationsUrl;
    const ask = async (...args: string[]) => {
      const { stdout, stderr } = await trunkline(args, { TRUNKLINE_ADMIN_KEY, TRUNKLINE_OPERATIONS_URL });
      return { out: stdout.replaceAll(/ +/g, " "), err: stderr };
    };
    const near = await ask("route", "near");
    expect(near.err).toContain("near stands for scripted, then scripted external.");
    expect(near.out).toMatch(/^ 1 attic scripted .*\n 2 cloud scripted /m);
    const refused = await ask("route", "large");
    expect(refused.out).toMatch(/^ - cloud .* its models run elsewhere: only routes that say so lead there$/m);
    expect(refused.err).toContain("model_not_found");
    expect((await ask("status")).out).toMatch(
      /^cloud .*its models run elsewhere: only routes that say so lead there$/m,
    );
  });

  test("a machine whose models run elsewhere gets no request that fails at home, but for a route and a key that ask for it", async () => {
    const [plain, may] = await Promise.all([issue({}), issue({ external: true })]);
    const before = cloud.jobs.length;
    await fleet.agent("attic").kill();
    const isHomeAway = async (): Promise<boolean> =>
      (await chats(plain.endpoints, "scripted")).every((code) => code === "agent_offline");
    await until(isHomeAway, { what: "the machine at home to be away" });
    expect(await chats(plain.endpoints, "near")).toEqual(twice("agent_offline"));
    expect(await chats(may.endpoints, "scripted")).toEqual(twice("agent_offline"));
    expect((await plain.endpoints[0]?.models())?.code).toBe("agent_offline");
    expect(cloud.jobs.length).toBe(before);
    expect(await chats(may.endpoints, "near")).toEqual(twice("cloud"));
  });

  test("a machine whose models run elsewhere gets nothing from a key that lost the right, within a second", async () => {
    const { id, endpoints } = await issue({ external: true });
    expect(await chats(endpoints, "best")).toEqual(twice("cloud"));
    await run("keys", "change", id, "--no-external");
    const isLost = async (): Promise<boolean> =>
      (await chats(endpoints, "best")).every((code) => code === "model_not_found");
    await until(isLost, { what: "the right to be lost", timeoutMs: 1_000 });
  });

  test("a machine whose models run elsewhere keeps its record for as long as it is marked, and is like any other machine without the mark", async () => {
    const removed = await trunkline(["machines", "remove", "cloud"], fleet.keyStore);
    expect([removed.exitCode, removed.stderr]).toEqual([1, expect.stringContaining("machines external cloud --off")]);
    const { endpoints } = await issue({});
    expect(await chats(endpoints, "large")).toEqual(twice("model_not_found"));
    await run("machines", "external", "cloud", "--off");
    const isUsed = async (): Promise<boolean> => (await chats(endpoints, "large")).every((by) => by === "cloud");
    await until(isUsed, { what: "the machine to be used as any other" });
  });
});
