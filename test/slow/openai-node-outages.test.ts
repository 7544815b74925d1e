import OpenAI, { APIConnectionError, APIError, InternalServerError } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";
import { thrownBy } from "../conformance/thrown-by.ts";
import { WatchedFetch } from "../conformance/watched-fetch.ts";

const requestID = expect.stringMatching(/^req_\w{10,}$/);
const talking = (line: string) => ({
  model: "scripted",
  messages: [{ role: "user" as const, content: `/script ${line}` }],
});

/** Each outage is mended before the next one, and the SDK's own retries see some of them through. */
describe("the official SDK, when something is away,", () => {
  let fleet: Fleet;
  let client: OpenAI;
  let patient: OpenAI;
  let watched: WatchedFetch;
  beforeAll(async () => {
    fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    const { baseUrl: baseURL, key: apiKey } = fleet.endpoint;
    client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  });
  beforeEach(() => {
    watched = new WatchedFetch();
    patient = client.withOptions({ maxRetries: 2, fetch: watched.fetch });
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  const say = (sdk: OpenAI, line = "tokens=1") => sdk.chat.completions.create(talking(line));

  test("the official SDK, when something is away, throws for a machine that dies, before its answer and in the middle of it", async () => {
    const whole = thrownBy(say(client, "first_ms=60000"));
    const stream = await client.chat.completions.create({
      ...talking("tokens=9 delay_ms=300 stall_at=3"),
      stream: true,
    });
    const broken = thrownBy(
      (async () => {
        for await (const { choices } of stream) {
          if (choices[0]?.delta.content === "token-2 ") await fleet.agent("attic").kill();
        }
      })(),
    );
    for (const error of await Promise.all([whole, broken])) {
      expect(error).toMatchObject({ code: "agent_disconnected", type: "server_error", param: null, requestID });
    }
    expect(await whole).toBeInstanceOf(InternalServerError);
    expect(await whole).toMatchObject({ status: 502 });
    expect(await broken).toBeInstanceOf(APIError);
  });

  test("the official SDK, when something is away, throws for a machine that is away, or asks again when it was told to and finds it there", async () => {
    const away = await thrownBy(say(client));
    expect(away).toBeInstanceOf(InternalServerError);
    const told = { status: 503, code: "agent_offline", type: "service_unavailable_error", param: "model", requestID };
    expect(away).toMatchObject(told);
    const asking = say(patient);
    await until(() => watched.statuses[0] === 503, { what: "the first try to fail" });
    await fleet.startAgent("attic", { models: ["scripted"] });
    expect((await asking).choices[0]?.message.content).toBe("token-0 ");
    expect(watched.statuses).toEqual([503, 200]);
    expectWaited(watched, 5_000);
  });

  test("the official SDK, when something is away, throws for a broker that is away, or asks again when it was told to and finds it there", async () => {
    await fleet.nats.kill();
    const away = await until(
      async () => {
        const error = await thrownBy(say(client));
        return error instanceof APIError && error.code === "backend_unavailable" && error;
      },
      { what: "the gateway to miss its broker" },
    );
    expect(away).toBeInstanceOf(InternalServerError);
    expect(away).toMatchObject({ status: 503, type: "service_unavailable_error", param: null, requestID });
    const asking = say(patient);
    await until(() => watched.statuses[0] === 503, { what: "the first try to fail" });
    await fleet.nats.restart();
    expect((await asking).choices[0]?.message.content).toBe("token-0 ");
    expectWaited(watched, 1_000);
  });

  test("the official SDK, when something is away, throws for a gateway that dies, before its answer and in the middle of it", async () => {
    const whole = thrownBy(say(client, "first_ms=60000"));
    const stream = await client.chat.completions.create({ ...talking("tokens=9 stall_at=3"), stream: true });
    const said: string[] = [];
    const broken = thrownBy(
      (async () => {
        for await (const { choices } of stream) {
          said.push(choices[0]?.delta.content ?? "");
          if (said.at(-1) === "token-2 ") await fleet.gateways[0]?.kill();
        }
      })(),
    );
    expect(await whole).toBeInstanceOf(APIConnectionError);
    expect(await broken).toBeInstanceOf(Error);
    expect(said.join("")).toBe("token-0 token-1 token-2 ");
    expect(await thrownBy(client.models.list())).toBeInstanceOf(APIConnectionError);
  });
});

function expectWaited({ sent }: WatchedFetch, ms: number): void {
  expect((sent[1]?.atMs ?? 0) - (sent[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(ms - 5);
}
