import { expect, test } from "vitest";
import { errorOf, type Endpoint } from "../harness/endpoint.ts";
import { EventStream } from "../harness/event-stream.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const seats = 100;
const freeWithinMs = 30_000;
/** Goes on for longer than any seat lives that is not renewed. */
const long = { model: "scripted", says: "/script tokens=1000 delay_ms=500", stream: true };

test.skipIf(lentOnly("nats", "redis"))(
  "a gateway that is killed has taken no seat for longer than 30 s",
  { timeout: 90_000 },
  async () => {
    await using fleet = await startFleet({ gateways: 2, machines: { attic: { models: ["scripted"] } } });
    await using operator = await Operator.on({ redisUrl: fleet.redis.url });
    const { token } = await operator.issue({ limits: { concurrency: seats } });
    const [here, there] = fleet.endpoints.map((endpoint) => endpoint.withKey(token.reveal()));
    if (here === undefined || there === undefined) throw new Error("the fleet has too few gateways");
    const leaving = new AbortController();

    const killed = await admitted(here, seats, leaving.signal);
    expect(killed).toHaveLength(seats);
    await expectFull(there);
    await fleet.gateways[0]?.kill();
    await expectFull(there);
    const running: EventStream[] = [];
    const all = async (): Promise<boolean> => {
      running.push(...(await admitted(there, seats - running.length, leaving.signal)));
      return running.length === seats;
    };
    await until(all, { what: "all seats to be free", timeoutMs: freeWithinMs, intervalMs: 500 });
    await expectFull(there);
    leaving.abort();
    await Promise.all([...killed, ...running].map(({ over }) => over));
  },
);

/** Of so many requests, sent at once, those that run and go on. They are read: the client drops what nobody holds. */
async function admitted(endpoint: Endpoint, count: number, signal: AbortSignal): Promise<EventStream[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => endpoint.chat(long, signal)));
  const refused = answers.filter(({ status }) => status !== 200);
  await Promise.all(refused.map((response) => response.text()));
  return answers.filter(({ status }) => status === 200).map((response) => new EventStream(response));
}

async function expectFull(endpoint: Endpoint): Promise<void> {
  const response = await endpoint.chat({ model: "scripted", says: "/script tokens=1" });
  expect(response.status).toBe(429);
  expect(await errorOf(response)).toMatchObject({ code: "concurrency_limit_exceeded" });
}
