import OpenAI, { InternalServerError, RateLimitError } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { FakeOpenAiChat } from "../harness/fake-openai-chat.ts";
import { until } from "../harness/until.ts";
import { limitedKey } from "./limited-key.ts";
import { failBefore, sayHello } from "./staged-answers.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";
import { thrownBy } from "./thrown-by.ts";
import { WatchedFetch } from "./watched-fetch.ts";

const firstTokenMs = 1_500;

/** The SDK retries by itself; what counts is how many requests arrive, when, and what the last of them says. */
describe("the official SDK's own retries", () => {
  let staged: StagedVllm;
  let watched: WatchedFetch;
  let client: OpenAI;
  beforeAll(async () => {
    const narrow = { TRUNKLINE_SLOTS: "1", TRUNKLINE_QUEUE_MAX: "0" };
    staged = await startStagedVllm({ ...narrow, TRUNKLINE_FIRST_TOKEN_MS: String(firstTokenMs) });
  });
  afterAll(() => staged[Symbol.asyncDispose]());
  beforeEach(() => {
    watched = new WatchedFetch();
    const { baseUrl: baseURL, key: apiKey } = staged.up.endpoint;
    client = new OpenAI({ baseURL, apiKey, fetch: watched.fetch });
  });

  const say = (sdk = client) =>
    sdk.chat.completions.create({ model: staged.model, messages: [{ role: "user", content: "Hello" }] });
  /** Keeps the runtime busy with a stream that has begun, until it is let go. */
  async function busyWith(sdk: OpenAI): Promise<FakeOpenAiChat> {
    const held = Promise.withResolvers<FakeOpenAiChat>();
    staged.answers((chat) => {
      chat.say("Well");
      held.resolve(chat);
    });
    const { model } = staged;
    await sdk.chat.completions.create({ model, messages: [{ role: "user", content: "Hold" }], stream: true });
    staged.answers(sayHello);
    return held.promise;
  }

  test("see a request through that a full key refuses, after the time that it was told", async () => {
    const own = client.withOptions({ apiKey: await limitedKey(staged.up, "--concurrency", "1"), maxRetries: 1 });
    const running = await busyWith(own.withOptions({ fetch }));
    const asking = say(own);
    await until(() => watched.statuses[0] === 429, { what: "the first try to be refused" });
    running.done();
    expect((await asking).choices[0]?.message.content).toBe("Hello there.");
    expect(watched.statuses).toEqual([429, 200]);
    expectWaited(watched, 1_000);
  });

  test("see a request through that a busy machine refuses, after the time that it was told", async () => {
    const running = await busyWith(client.withOptions({ fetch }));
    const asking = say();
    await until(() => watched.statuses[0] === 503, { what: "the first try to be refused" });
    running.done();
    expect((await asking).choices[0]?.message.content).toBe("Hello there.");
    expect(watched.statuses).toEqual([503, 200]);
    expectWaited(watched, 1_000);
  });

  test("see a request through that the runtime failed once, and only once", async () => {
    let failures = 0;
    staged.answers((chat) => {
      failures += 1;
      if (failures > 1) sayHello(chat);
      else failBefore(chat);
    });
    expect((await say()).choices[0]?.message.content).toBe("Hello there.");
    expect(watched.statuses).toEqual([502, 200]);
  });

  test("end in the true error when it does not go away, and are told apart by the SDK", async () => {
    staged.answers(failBefore);
    const error = await thrownBy(say(client.withOptions({ maxRetries: 1 })));
    expect(error).toBeInstanceOf(InternalServerError);
    expect(error).toMatchObject({ status: 502, code: "upstream_error" });
    expect(watched.statuses).toEqual([502, 502]);
    expect(watched.sent.map(({ headers }) => headers.get("x-stainless-retry-count"))).toEqual(["0", "1"]);
  });

  test("are not made where a retry would fail the same way", async () => {
    staged.answers(sayHello);
    const spent = client.withOptions({ apiKey: await limitedKey(staged.up, "--budget", "1/day") });
    await say(spent);
    const poor = await thrownBy(say(spent));
    expect(poor).toBeInstanceOf(RateLimitError);
    expect(poor).toMatchObject({ status: 429, code: "insufficient_quota", type: "insufficient_quota" });
    staged.answers(() => {});
    const late = await thrownBy(say());
    expect(late).toBeInstanceOf(InternalServerError);
    expect(late).toMatchObject({ status: 504, code: "upstream_timeout", type: "server_error", param: null });
    expect(watched.statuses).toEqual([200, 429, 504]);
    const told = watched.sent.map(({ answered }) => answered?.headers.get("x-should-retry") ?? null);
    expect(told).toEqual([null, "false", "false"]);
  });

  test("are told that no runtime answers", async () => {
    await staged.vllm.stop();
    const impatient = client.withOptions({ maxRetries: 0 });
    const error = await until(
      async () => {
        const thrown = await thrownBy(Promise.resolve(impatient.models.list()));
        return thrown instanceof InternalServerError && thrown;
      },
      { what: "the runtime to be missed" },
    );
    expect(error).toMatchObject({
      status: 503,
      code: "runtime_offline",
      type: "service_unavailable_error",
      param: null,
    });
    expect(watched.sent.at(-1)?.answered?.headers.get("retry-after")).toBe("5");
  });
});

/** Timers may be a hair early. */
function expectWaited({ sent }: WatchedFetch, ms: number): void {
  expect((sent[1]?.atMs ?? 0) - (sent[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(ms - 5);
}
