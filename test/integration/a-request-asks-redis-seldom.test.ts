import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { RedisConnection } from "#shared/process/redis-connection.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { until } from "../harness/until.ts";

/** Every question to Redis, one or several commands in one round trip, by what it is asked for. */
const asked: string[] = [];
/** Asked all the time, and by no request. */
const background = new Set([
  "tell of changed keys",
  "find the last change",
  "find the change that was read last",
  "write down what has ended",
  "tell its time",
]);
/** The answers to each question for changed keys, one line for each question. */
let changes = "";
const trips = (): string[] => asked.filter((purpose) => !background.has(purpose));

const allLimits = {
  requestsPerMinute: 1_000_000,
  tokensPerMinute: 1_000_000_000,
  concurrency: 1_000,
  budget: { tokens: 1e12, per: "day" },
} as const;

let redis: SomeServer;
let gateway: GatewayInProcess;
beforeAll(async () => {
  const run = Reflect.get(RedisConnection.prototype, "run");
  vi.spyOn(RedisConnection.prototype, "run").mockImplementation(function (this: RedisConnection, purpose, command) {
    asked.push(purpose);
    const answering = Reflect.apply(run, this, [purpose, command]);
    if (purpose === "tell of changed keys") {
      changes += "\n";
      answering.then((answer) => (changes += JSON.stringify(answer))).catch(() => undefined);
    }
    return answering;
  });
  redis = await redisUrl();
  gateway = await startGatewayInProcess({ redisUrl: redis.url, logLevel: "info" });
  // The first key founds the store. A gateway then reads all records again, which is no request's doing.
  await gateway.issue();
  for (const records of ["machines", "routes"]) {
    const isRead = (): boolean =>
      gateway.logged.some((line) => line.includes(`changed records of ${records} were read`));
    await until(isRead, { what: `the records of ${records} to be read` });
  }
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await redis.stop();
  vi.restoreAllMocks();
});
beforeEach(() => void asked.splice(0));

/** What Redis was asked before the first byte of a stream's answer. */
async function tripsOf(endpoint: Endpoint): Promise<string[]> {
  asked.splice(0);
  const response = await endpoint.chat({ model: "scripted", says: "/script tokens=1", stream: true });
  const before = trips();
  expect(response.status).toBe(200);
  await response.text();
  return before;
}
/** The change that issuing was is told first, or it would make the gateway ask twice. */
async function issueHeard(terms: Parameters<GatewayInProcess["issue"]>[0]): Promise<Endpoint> {
  const { endpoint, record } = await gateway.issue(terms);
  // The gateway has taken an answer when it asks the next question.
  const isHeard = (): boolean =>
    changes
      .split("\n")
      .slice(0, -1)
      .some((answer) => answer.includes(record.id));
  await until(isHeard, { what: "the new key to be told of" });
  asked.splice(0);
  return endpoint;
}

describe("before the first byte of an answer Redis is asked", () => {
  test("once about a key that was not seen before, and then not at all", async () => {
    const endpoint = await issueHeard({});
    expect(await tripsOf(endpoint)).toEqual(["find a key"]);
    expect(await tripsOf(endpoint)).toEqual([]);
    expect(await tripsOf(endpoint)).toEqual([]);
  });

  test("once more about all limits of the key together", async () => {
    const endpoint = await issueHeard({ limits: allLimits });
    expect(await tripsOf(endpoint)).toEqual(["find a key", "admit requests"]);
    expect(await tripsOf(endpoint)).toEqual(["admit requests"]);
    expect(await tripsOf(endpoint)).toEqual(["admit requests"]);
  });

  test("once for how a key stands, when the models are listed or a request comes to nothing", async () => {
    const endpoint = await issueHeard({ limits: allLimits });
    await endpoint.models();
    asked.splice(0);
    expect((await endpoint.models()).status).toBe(200);
    expect(trips()).toEqual(["tell how a key stands"]);
    asked.splice(0);
    expect((await endpoint.chat({ model: "scripted" })).status).toBe(400);
    expect(trips()).toEqual(["tell how a key stands"]);
  });

  test("never about what can be no key", async () => {
    const endpoint = await issueHeard({});
    const wrong = endpoint.key.slice(0, -1) + (endpoint.key.endsWith("0") ? "1" : "0");
    for (const key of [wrong, "' OR '1'='1", "*", "trunkline_*", "x".repeat(4_096)]) {
      expect((await endpoint.withKey(key).models()).status).toBe(401);
    }
    expect(trips()).toEqual([]);
  });
});

test("answers that end together are written in few settlements, however many there are", async () => {
  const endpoint = await issueHeard({});
  await endpoint.answer({ model: "scripted:plain", says: "/script tokens=1" });
  asked.splice(0);
  const [rounds, atOnce] = [20, 20];
  for (let round = 0; round < rounds; round += 1) {
    const requests = Array.from({ length: atOnce }, () =>
      endpoint.answer({ model: "scripted:plain", says: "/script tokens=1" }),
    );
    await Promise.all(requests);
  }
  const settlements = asked.filter((purpose) => purpose === "write down what has ended").length;
  expect(settlements).toBeGreaterThan(0);
  // Nearly all of a round's answers end in the same turns of the event loop.
  expect(settlements).toBeLessThan((rounds * atOnce) / 2);
});
