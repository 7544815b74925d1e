import OpenAI, { PermissionDeniedError } from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import { thrownBy } from "../conformance/thrown-by.ts";
import { WatchedFetch } from "../conformance/watched-fetch.ts";
import { type Endpoint, errorIn, refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { until } from "../harness/until.ts";

type Running = AnswerTo<"GET /requests/running">["data"][number];
const isLong = "/script tokens=3000 delay_ms=10 nonce=a";
const cancelled = { status: 403, code: "cancelled_by_operator", type: "permission_error" };

describe.skipIf(lentOnly("nats", "redis"))("a running request", () => {
  let fleet: Fleet;
  let operator: Operator;
  /** The admin API of each gateway. */
  let admins: readonly Endpoint[];
  let viewer: Endpoint;
  beforeAll(async () => {
    const narrow = { models: ["scripted"], env: { TRUNKLINE_SLOTS: "1" } };
    fleet = await startFleet({ gateways: 2, machines: { attic: narrow, cellar: narrow } });
    operator = await Operator.on({ redisUrl: fleet.redis.url });
    const one = await fleet.admin();
    admins = fleet.gateways.map(({ operationsUrl }) => one.at(`${operationsUrl}/admin/v1`));
    viewer = one.withKey((await operator.issue({ kind: "viewer" })).token.reveal());
  });
  afterAll(async () => {
    await operator[Symbol.asyncDispose]();
    await fleet[Symbol.asyncDispose]();
  });

  const adminAt = (gateway: number): Endpoint => admins[gateway] ?? viewer;

  /** A client of a key of its own at the first gateway. */
  async function newClient() {
    const { token, record } = await operator.issue({ name: "alice" });
    const watched = new WatchedFetch();
    const endpoint = fleet.endpoint.withKey(token.reveal());
    const sdk = new OpenAI({ baseURL: endpoint.baseUrl, apiKey: token.reveal(), fetch: watched.fetch });
    const say = (content: string) =>
      sdk.chat.completions.create({ model: "scripted", messages: [{ role: "user", content }] });
    const running = (isIt: (request: Running) => boolean, gateway = 1) =>
      until(async () => (await listed(gateway)).find((each) => each.key === record.id && isIt(each)), {
        what: "it to run",
      });
    return { endpoint, sdk, say, watched, running, keyId: record.id };
  }

  async function listed(gateway: number): Promise<readonly Running[]> {
    const { data, silent } = (await (
      await adminAt(gateway).get("/requests/running")
    ).json()) as AnswerTo<"GET /requests/running">;
    return silent.length === 0 ? data : [];
  }

  const cancel = (id: string, gateway = 1): Promise<Response> => adminAt(gateway).post(`/requests/${id}/cancel`, {});
  const record = (id: string) =>
    until(
      async () => {
        const response = await adminAt(0).get(`/requests/${id}`);
        return response.status === 200 && ((await response.json()) as AnswerTo<"GET /requests/{id}">);
      },
      { what: "the record of the request" },
    );
  const jobs = async (): Promise<number> =>
    (await MetricsText.scrape(fleet.gateway.operationsUrl)).value("trunkline_open_jobs") ?? 0;

  test("a stream that is cancelled at another gateway ends with an error event, goes on at no machine, and is settled, recorded and in the trail", async () => {
    const { endpoint, running, keyId } = await newClient();
    const stream = await endpoint.stream({ model: "scripted", says: isLong });
    const shown = await running(({ state, tokens }) => state === "answering" && tokens > 20);
    expect(shown).toMatchObject({ model: "scripted", path: "/v1/chat/completions", streamed: true });
    const answer = await cancel(shown.id);
    expect([answer.status, await answer.json()]).toEqual([200, { id: shown.id, state: "cancelled" }]);
    expect(await stream.over).toBe("closed");
    expect(errorIn(stream.events.at(-1) ?? "")).toMatchObject({ code: "cancelled_by_operator" });
    expect(stream.events).not.toContain("[DONE]");
    await until(async () => (await jobs()) === 0, { what: "no machine to have the job" });
    const { code, ended_by: by, tried, completion_tokens: tokens } = await record(shown.id);
    expect([code, by, tried.length]).toEqual(["cancelled_by_operator", "operator", 1]);
    expect(tokens).toBeGreaterThan(20);
    expect(await operator.booked(keyId)).toMatchObject({ requests: 1, failed: 1, completionTokens: tokens });
    const trail = (await (await adminAt(0).get(`/log?key=${keyId}`)).json()) as AnswerTo<"GET /log">;
    const entry = {
      action: "request_cancelled",
      key: keyId,
      name: "alice",
      detail: { request: shown.id, model: "scripted" },
    };
    expect(trail.data.at(-1)).toMatchObject({ ...entry, by: expect.stringMatching(/^admin /) });
    expect(await refusalOf(cancel(shown.id))).toMatchObject({ status: 404, code: "request_not_found" });
    expect(await listed(0)).toEqual([]);
  });

  test("a whole answer and a request in a queue that are cancelled reach the official client once, as a 403 that it does not repeat", async () => {
    const { say, watched } = await newClient();
    const asked = [say(isLong), say(isLong), say(isLong)].map(thrownBy);
    const all = await until(
      async () => {
        const [first, second, third] = (await listed(1)).toSorted((one, other) => one.tokens - other.tokens);
        return first?.state === "waiting" && second?.state === "answering" && third && [first, second, third];
      },
      { what: "one of three requests to wait behind two others" },
    );
    const [waiting] = all;
    expect(await refusalOf(viewer.post(`/requests/${waiting?.id}/cancel`, {}))).toMatchObject({
      status: 403,
      code: "insufficient_permissions",
    });
    for (const { id } of all) expect((await cancel(id)).status).toBe(200);
    for (const thrown of await Promise.all(asked)) {
      expect(thrown).toBeInstanceOf(PermissionDeniedError);
      expect(thrown).toMatchObject(cancelled);
    }
    expect(watched.sent).toHaveLength(3);
    expect(watched.sent.map(({ answered }) => answered?.headers.get("x-should-retry"))).toEqual([
      "false",
      "false",
      "false",
    ]);
  });

  test("a request with an Idempotency-Key that is cancelled is made anew by none of its repeats", async () => {
    const { endpoint, running } = await newClient();
    const ask = () =>
      refusalOf(
        endpoint.post(
          "/chat/completions",
          { model: "scripted", messages: [{ role: "user", content: isLong }] },
          { headers: { "idempotency-key": "once" } },
        ),
      );
    const first = ask();
    const shown = await running(({ state }) => state === "answering");
    const repeat = ask();
    await cancel(shown.id);
    expect([await first, await repeat, await ask()]).toEqual(Array(3).fill(expect.objectContaining(cancelled)));
    expect(await jobs()).toBe(0);
  });

  test("a resumable stream that is cancelled after its client has left cannot be resumed", async () => {
    const { endpoint, running } = await newClient();
    const ask = (headers: Readonly<Record<string, string>>, signal?: AbortSignal) =>
      endpoint.post(
        "/chat/completions",
        { model: "scripted", stream: true, messages: [{ role: "user", content: isLong }] },
        { headers: { "x-trunkline-resumable": "1", ...headers }, signal },
      );
    const leaving = new AbortController();
    const answer = await ask({}, leaving.signal);
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    const [, id = ""] = /^id: (\S+)/m.exec((await reader?.read())?.value ?? "") ?? [];
    leaving.abort();
    const shown = await running(({ state, tokens }) => state === "answering" && tokens > 20);
    expect((await cancel(shown.id)).status).toBe(200);
    const resumed = await ask({ "last-event-id": id });
    const last = (await resumed.text()).trim().split("data: ").at(-1) ?? "";
    expect(errorIn(last).code).not.toBeNull();
  });
});
