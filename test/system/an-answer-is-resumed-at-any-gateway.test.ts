import { request, type ClientRequest } from "node:http";
import { newToken } from "#shared/protocol/identifiers.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Endpoint, errorOf, refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

const apis = {
  "/chat/completions": (says: string) => ({ messages: [{ role: "user", content: says }] }),
  "/responses": (says: string) => ({ input: says }),
  "/messages": (says: string) => ({ max_tokens: 10_000, messages: [{ role: "user", content: says }] }),
} as const;
type Api = keyof typeof apis;

interface Event {
  readonly id: string | undefined;
  readonly data: string;
}

interface Asking {
  readonly gateway?: number;
  readonly key?: string;
  readonly api?: Api;
  readonly lastEventId?: string | undefined;
  readonly signal?: AbortSignal;
}

/** Reads events until there are `count` of them, or to the end of the stream. */
async function eventsOf(
  answer: Response,
  { count = Infinity, onEvent }: { readonly count?: number; readonly onEvent?: (event: Event) => void } = {},
): Promise<Event[]> {
  const events: Event[] = [];
  let rest = "";
  for await (const text of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const parts = (rest + text).split("\n\n");
    rest = parts.pop() ?? "";
    for (const part of parts) {
      const fields = Object.fromEntries(part.split("\n").map((line) => line.split(/: (.*)/s)));
      if (fields["data"] === undefined) continue;
      const event = { id: fields["id"], data: fields["data"] };
      events.push(event);
      onEvent?.(event);
      if (events.length >= count) return events;
    }
  }
  return events;
}

const dataOf = (events: readonly Event[]): string[] => events.map(({ data }) => data);

/** Insists that each token of the answer came once, and in its place. */
function expectTokens(events: readonly Event[], nonce: string, tokens: number): void {
  const came = dataOf(events)
    .join("\n")
    .match(new RegExp(`${nonce}-\\d+`, "g"));
  expect(came).toEqual(Array.from({ length: tokens }, (_, token) => `${nonce}-${token}`));
}

describe.skipIf(lentOnly("nats", "redis"))("a stream that was asked to be resumable", () => {
  let fleet: Fleet;
  let operator: Operator;
  beforeAll(async () => {
    fleet = await startFleet({ gateways: 3, machines: { attic: { models: ["scripted"] } } });
    operator = await Operator.on({ redisUrl: fleet.redis.url });
  });
  afterAll(async () => {
    await operator[Symbol.asyncDispose]();
    await fleet[Symbol.asyncDispose]();
  });

  const endpointAt = (gateway: number, key = fleet.endpoint.key): Endpoint =>
    fleet.endpoint.at(fleet.endpoints[gateway]?.baseUrl ?? "").withKey(key);

  const ask = (says: string, { gateway = 0, key, api = "/chat/completions", lastEventId, signal }: Asking = {}) =>
    endpointAt(gateway, key).post(
      api,
      { model: "scripted", stream: true, ...apis[api](says) },
      {
        headers: { "x-trunkline-resumable": "1", ...(lastEventId !== undefined && { "last-event-id": lastEventId }) },
        signal,
      },
    );

  /** Asks, and goes on reading when some events have come. */
  async function read(says: string) {
    const events: Event[] = [];
    const reading = ask(says).then((answer) => eventsOf(answer, { onEvent: (event) => events.push(event) }));
    await until(() => events.length > 5, { what: "some events" });
    return { events, reading };
  }

  /** Asks, reads some events and drops the connection. */
  async function begun(says: string, asking: Asking & { readonly events: number }): Promise<Event[]> {
    const leaving = new AbortController();
    const answer = await ask(says, { ...asking, signal: leaving.signal });
    expect([answer.status, answer.headers.get("x-trunkline-resumable")]).toEqual([200, "1"]);
    const events = await eventsOf(answer, { count: asking.events });
    leaving.abort();
    return events;
  }

  test("a stream that was asked to be resumable is named as ignored where it is asked for and means nothing", async () => {
    const fields = { model: "scripted", messages: [{ role: "user", content: "/script tokens=1" }] };
    const headers = { "x-trunkline-resumable": "1" };
    const whole = await fleet.endpoint.post("/chat/completions", fields, { headers });
    expect([whole.status, whole.headers.get("x-trunkline-ignored")]).toEqual([200, "x-trunkline-resumable"]);
  });

  test.each(Object.keys(apis) as Api[])(
    "a stream that was asked to be resumable of %s goes on at another gateway with exactly the rest",
    async (api) => {
      const says = "/script tokens=40 think=3 delay_ms=10 nonce=n";
      const first = await begun(says, { api, events: 9 });
      const rest = await eventsOf(await ask(says, { api, gateway: 1, lastEventId: first.at(-1)?.id }));
      // The answer is over by now, and its machine still has it.
      const whole = await eventsOf(await ask(says, { api, gateway: 2, lastEventId: first[0]?.id }));
      expect(dataOf([...first, ...rest])).toEqual(dataOf([...first.slice(0, 1), ...whole]));
      expect(dataOf(rest).join("\n")).toContain("n-39 ");
      const numbers = [...first, ...rest].flatMap(({ id }) => (id === undefined ? [] : [Number(id.split(".").at(-1))]));
      expect(numbers).toEqual(numbers.map((_, place) => place + 1));
    },
  );

  test("a stream that was asked to be resumable goes on at the same gateway, also while that still follows it", async () => {
    const says = "/script tokens=60 delay_ms=20 nonce=s";
    const first = await begun(says, { events: 5 });
    const rest = await eventsOf(await ask(says, { lastEventId: first.at(-1)?.id }));
    expect(dataOf(rest).at(-1)).toBe("[DONE]");
    expectTokens([...first, ...rest], "s", 60);
  });

  test("a stream that was asked to be resumable breaks the connection from which another request takes it over, so that a live client asks again", async () => {
    const says = "/script tokens=60 delay_ms=20 nonce=t";
    const { events, reading } = await read(says);
    const broken = expect(reading).rejects.toThrow("terminated");
    const taking = await ask(says, { gateway: 1, lastEventId: events[0]?.id });
    await broken;
    expect(dataOf(events).join("\n")).not.toContain("error");
    const again = await eventsOf(await ask(says, { gateway: 2, lastEventId: events.at(-1)?.id }));
    expect(dataOf(again).at(-1)).toBe("[DONE]");
    await taking.body?.cancel().catch(() => undefined);
  });

  test("a stream that was asked to be resumable is counted once, however often it is resumed, and no limit of its key refuses that", async () => {
    const { token, record } = await operator.issue({ limits: { concurrency: 1, requestsPerMinute: 1 } });
    const key = token.reveal();
    const says = "/script tokens=50 delay_ms=20 nonce=c";
    let events = await begun(says, { key, events: 5 });
    for (const gateway of [1, 2, 0, 1]) {
      const asking = { key, gateway, lastEventId: events.at(-1)?.id };
      events = [...events, ...(await begun(says, { ...asking, events: 5 }))];
    }
    events = [...events, ...(await eventsOf(await ask(says, { key, gateway: 2, lastEventId: events.at(-1)?.id })))];
    expect(dataOf(events).join("\n").match(/c-\d+/g)).toHaveLength(50);
    const booked = operator.booked(record.id, ({ completionTokens }) => completionTokens >= 50);
    expect(await booked).toMatchObject({ requests: 1, failed: 0, answered: 1, completionTokens: 50 });
  });

  test("a stream that was asked to be resumable takes the seat of its key at each gateway that it is resumed at, and gives it back", async () => {
    const { token } = await operator.issue({ limits: { concurrency: 1 } });
    const key = token.reveal();
    const says = "/script tokens=150 delay_ms=20";
    let lastEventId = (await begun(says, { key, events: 3 })).at(-1)?.id;
    for (const gateway of [1, 2])
      lastEventId = (await begun(says, { key, gateway, lastEventId, events: 3 })).at(-1)?.id;
    expect(await refusalOf(ask("/script tokens=1", { key, gateway: 1 }))).toMatchObject({
      status: 429,
      code: "concurrency_limit_exceeded",
    });
    await eventsOf(await ask(says, { key, lastEventId }));
    const free = async (): Promise<boolean> => (await ask("/script tokens=1", { key, gateway: 1 })).status === 200;
    await until(free, { what: "the seat to be free" });
  });

  /** Reads an answer of the third gateway, which is killed amid it. */
  async function untilKilled(answer: Response): Promise<Event[]> {
    const events: Event[] = [];
    const broken = eventsOf(answer, { onEvent: (event) => void events.push(event) }).catch(() => []);
    await until(() => events.length > 20, { what: "a part of the answer" });
    await fleet.gateways[2]?.kill();
    await broken;
    return events;
  }

  test("a stream that was asked to be resumable of a gateway that is killed goes on at another one, at once, and leaves no seat behind", async () => {
    const { token, record } = await operator.issue({ limits: { concurrency: 1 } });
    const key = token.reveal();
    const says = "/script tokens=150 delay_ms=20 nonce=k";
    const first = await untilKilled(await ask(says, { gateway: 2, key }));
    const rest = await eventsOf(await ask(says, { gateway: 1, key, lastEventId: first.at(-1)?.id }));
    expectTokens([...first, ...rest], "k", 150);
    expect((await ask("/script tokens=1", { gateway: 0, key })).status).toBe(200);
    await fleet.restartGateway(2);
    const booked = await operator.usageSum(record.id);
    expect(booked?.completionTokens).toBeLessThanOrEqual(151);
  });

  test("a stream that was asked to be resumable of a response whose gateway is killed is stored by the gateway that it goes on at", async () => {
    const key = (await operator.issue({ storesResponses: true })).token.reveal();
    const says = "/script tokens=60 delay_ms=20 nonce=r";
    const first = await untilKilled(await ask(says, { gateway: 2, key, api: "/responses" }));
    const asking = { gateway: 1, key, api: "/responses", lastEventId: first.at(-1)?.id } as const;
    const last = (await eventsOf(await ask(says, asking))).at(-1)?.data ?? "";
    const { response } = JSON.parse(last) as { response: { id: string; store: boolean } };
    expect(response.store).toBe(true);
    const stored = await endpointAt(0, key).get(`/responses/${response.id}`);
    expect([stored.status, await stored.json()]).toEqual([200, response]);
    await fleet.restartGateway(2);
  });

  /** A request to resume that sends its body once it may, or never. */
  function resuming(lastEventId: string): { readonly asking: ClientRequest; isLet: boolean; status: number } {
    const url = `${fleet.endpoint.baseUrl}/chat/completions`;
    const headers = {
      authorization: `Bearer ${fleet.endpoint.key}`,
      "content-type": "application/json",
      "content-length": 225_000,
      "last-event-id": lastEventId,
      expect: "100-continue",
    };
    const asking = request(url, { method: "POST", headers });
    const state = { asking, isLet: false, status: 0 };
    asking.on("continue", () => (state.isLet = true));
    asking.on("response", ({ statusCode = 0 }) => (state.status = statusCode));
    asking.on("error", () => undefined);
    asking.flushHeaders();
    return state;
  }

  test("a stream that was asked to be resumable is refused before a byte of its body is read where its machine is not there", async () => {
    const state = resuming(`nowhere.${newToken()}.1`);
    await until(() => state.status === 404, { what: "the refusal" });
    expect(state.isLet).toBe(false);
    state.asking.destroy();
  });

  test("a stream that was asked to be resumable is asked for by four bodies of a key at once, and the fifth waits for one of them", async () => {
    const all = Array.from({ length: 5 }, () => resuming(`attic.${newToken()}.1`));
    const letIn = (): number => all.filter(({ isLet }) => isLet).length;
    await until(() => letIn() >= 4, { what: "four of them to be read" });
    // Another request that is answered meanwhile shows that the fifth was not overlooked.
    expect((await ask("/script tokens=1")).status).toBe(200);
    expect(letIn()).toBe(4);
    all.find(({ isLet }) => isLet)?.asking.destroy();
    await until(() => letIn() === 5, { what: "the fifth to be read" });
    for (const { asking } of all) asking.destroy();
  });

  test("a stream that was asked to be resumable is read to its end by its client while another key asks its gateway for it", async () => {
    const says = "/script tokens=60 delay_ms=20 nonce=u";
    const { events, reading } = await read(says);
    const other = (await operator.issue()).token.reveal();
    expect(await refusalOf(ask(says, { key: other, lastEventId: events[0]?.id }))).toMatchObject({
      status: 404,
      code: "answer_not_found",
    });
    expect(dataOf(await reading).at(-1)).toBe("[DONE]");
  });

  test("a stream that was asked to be resumable is nobody else's: another key, a made-up id and a plain text get nothing", async () => {
    const says = "/script tokens=200 delay_ms=20";
    const first = await begun(says, { events: 3 });
    const id = first.at(-1)?.id ?? "";
    const other = (await operator.issue()).token.reveal();
    const [machine, job, number] = id.split(".");
    const madeUp = `${machine}.${job?.slice(1)}0.${number}`;
    for (const [asking, status, code] of [
      [{ key: other, lastEventId: id }, 404, "answer_not_found"],
      [{ lastEventId: madeUp }, 404, "answer_not_found"],
      [{ lastEventId: `nowhere.${job}.1` }, 404, "answer_not_found"],
      [{ lastEventId: "7" }, 400, "invalid_value"],
    ] as const) {
      const answer = await ask(says, { gateway: 1, ...asking });
      expect([answer.status, await errorOf(answer)]).toMatchObject([status, { code, param: "Last-Event-ID" }]);
    }
  });
});
