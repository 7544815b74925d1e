import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { Peppers, pepperText } from "#shared/keys/pepper.ts";
import type { KeyId } from "#shared/keys/key-token.ts";
import { changeKey } from "#shared/records/change-key.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { KeptResponses, storedResponseBytesMax } from "../../services/gateway/apis/responses/kept-responses.ts";
import { storedTurnsMax, writeTurn } from "../../services/gateway/apis/responses/stored-turns.ts";
import { backUp } from "../../services/gateway/backup.ts";
import { type Endpoint, errorOf, refusalOf } from "../harness/endpoint.ts";
import { type GatewayInProcess, startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const response = z.looseObject({ id: z.string(), store: z.boolean(), status: z.string() });

const mib = 1024 * 1024;

const stateDir = folderOfTests();
let gateway: GatewayInProcess;
beforeAll(async () => void (gateway = await startGatewayInProcess({ stateDir, logLevel: "debug" })));
afterAll(() => gateway?.[Symbol.asyncDispose]());

const call = (endpoint: Endpoint, path: string, method = "GET", body?: object): Promise<Response> =>
  endpoint.send(method, `/responses${path}`, body);
const post = (endpoint: Endpoint, fields: object, headers?: Record<string, string>): Promise<Response> =>
  endpoint.post("/responses", { model: "scripted", input: "/script tokens=1", ...fields }, { headers });
const begin = (endpoint: Endpoint, fields: object = {}) => endpoint.post("/conversations", fields);

async function make(endpoint: Endpoint, fields: object = {}) {
  const answer = await post(endpoint, fields);
  expect(answer.status).toBe(200);
  return response.parse(await answer.json());
}

const terms = { keptMs: 60_000, keyBytesMax: 2 ** 30, siteBytesMax: 2 ** 32 };
const storing = () => gateway.issue({ storesResponses: true });

/** The id and the text of a chain of so many turns, as if they had been stored one after the other. */
function chainOf(turns: number): { id: string; text: string } {
  const id = newToken("resp_");
  const before = Array.from({ length: turns - 1 }, () => newToken("resp_"));
  return { id, text: writeTurn(id, { before, input: "[]" }, JSON.stringify({ id, output: [] })) };
}

const keptWith = (peppers: Peppers) =>
  new KeptResponses({
    stored: gateway.store.responses,
    peppers,
    ofAll: false,
    terms,
    log: { warn: () => undefined },
  });

test("a stored response of another key, a deleted one and one that never was get the same words", async () => {
  const [mine, yours] = [await storing(), await storing()];
  const [{ id: other }, { id: deleted }] = [await make(yours.endpoint), await make(mine.endpoint)];
  expect((await call(mine.endpoint, `/${deleted}`, "DELETE")).status).toBe(200);
  const told = [];
  for (const id of [newToken("resp_"), other, deleted, "resp_1", "a:b*"]) {
    const ways = [
      call(mine.endpoint, `/${id}`),
      call(mine.endpoint, `/${id}/input_items`),
      call(mine.endpoint, `/${id}`, "DELETE"),
      post(mine.endpoint, { previous_response_id: id }),
      post(mine.endpoint, { input: [{ type: "item_reference", id: `msg_${id.slice(5)}0` }] }),
    ];
    const errors = await Promise.all(ways.map(async (way) => [(await way).status, await errorOf(await way)] as const));
    told.push(errors.map(([status, { code, message, param }]) => [status, code, message, param]));
  }
  expect(told[0]?.[0]).toEqual([404, "response_not_found", expect.stringContaining("no such response"), null]);
  for (const each of told) expect(each).toEqual(told[0]);
  expect((await call(yours.endpoint, `/${other}`)).status).toBe(200);
});

test("a stored response is none of a key whose record does not say so, and such a key is told", async () => {
  const { endpoint } = await gateway.issue();
  const answer = await post(endpoint, { store: true });
  expect(answer.headers.get("x-trunkline-ignored")).toBe("store");
  const { id, store } = response.parse(await answer.json());
  expect([store, (await call(endpoint, `/${id}`)).status]).toEqual([false, 404]);
  expect(await refusalOf(await post(endpoint, { previous_response_id: id }))).toMatchObject({
    status: 400,
    param: "previous_response_id",
  });
});

test("a stored response stays while its key may store no more, and is deleted with it", async () => {
  const { endpoint, record } = await storing();
  const { id } = await make(endpoint);
  const parts = { ...gateway.store, actor: { by: "the test" } };
  await changeKey(record.id, { action: "changed", terms: { storesResponses: false } }, parts);
  const isIgnored = async (): Promise<boolean> =>
    (await post(endpoint, { store: true })).headers.get("x-trunkline-ignored") === "store";
  await vi.waitFor(async () => expect(await isIgnored()).toBe(true));
  expect((await call(endpoint, `/${id}`)).status).toBe(200);
  await changeKey(record.id, { action: "revoked" }, parts);
  expect(await gateway.store.responses.find(record.id, [id])).toEqual([undefined]);
});

test("a stored response is in no file and no line of the log as text, and not in a backup", async () => {
  const { endpoint } = await storing();
  const { id } = await make(endpoint, { input: "/script tokens=3 nonce=canary-answer\ncanary-prompt" });
  for (const file of await readdir(stateDir))
    expect((await readFile(join(stateDir, file))).includes("canary")).toBe(false);
  expect(gateway.logged.join("")).not.toContain("canary");
  const file = join(stateDir, "site.backup");
  await backUp({ ...gateway.store, actor: { by: "the test" } }, { file, secrets: {} });
  const unpacked = gunzipSync(await readFile(file));
  expect([unpacked.includes("CREATE TABLE responses"), unpacked.includes(id)]).toEqual([true, false]);
});

test("a stored response is read under a pepper that is being replaced, and not once it is gone", async () => {
  const { record } = await gateway.issue();
  const pepper = pepperText.parse(testPepper);
  const next = pepperText.parse("another pepper that is long enough");
  const made = chainOf(1);
  await keptWith(new Peppers(pepper)).store(record.id, made);
  expect(await keptWith(new Peppers(next, pepper)).find(record.id, made.id)).toBe(made.text);
  expect(await keptWith(new Peppers(next)).find(record.id, made.id)).toBeUndefined();
});

test("a stored response does not pass for another one, or for another key's, by a writer of the store", async () => {
  const [mine, yours] = [await storing(), await storing()];
  const { id } = await make(mine.endpoint);
  const { responses } = gateway.store;
  const [sealed = new Uint8Array()] = await responses.find(mine.record.id, [id]);
  const moved = newToken("resp_");
  await responses.put(mine.record.id, { id: moved, sealed }, terms);
  await responses.put(yours.record.id, { id, sealed }, terms);
  expect((await call(mine.endpoint, `/${moved}`)).status).toBe(404);
  expect((await call(yours.endpoint, `/${id}`)).status).toBe(404);
});

describe("a conversation of stored turns", () => {
  const keep = async (key: KeyId, turns: number): Promise<string> => {
    const chain = chainOf(turns);
    expect(await keptWith(gateway.store.peppers).store(key, chain)).toBe(true);
    return chain.id;
  };

  test("a conversation of stored turns that is too long is refused by the name of its limit", async () => {
    const { endpoint, record } = await storing();
    expect(
      await refusalOf(await post(endpoint, { previous_response_id: await keep(record.id, storedTurnsMax) })),
    ).toMatchObject({
      status: 400,
      code: "array_above_max_length",
      param: "previous_response_id",
      message: expect.stringContaining("storedTurnsMax"),
    });
  });

  test("a conversation of stored turns that is full takes no turn more, and neither a response nor items are stored for it", async () => {
    const { endpoint, record } = await storing();
    const conversation = newToken("conv_");
    const kept = keptWith(gateway.store.peppers);
    await kept.put(record.id, conversation, "{}");
    for (let place = 1; place <= storedTurnsMax; place += 1)
      await kept.put(record.id, `${conversation}.${place}`, newToken("resp_"));
    const id = newToken("resp_");
    expect(await kept.store(record.id, { id, text: chainOf(1).text, conversation })).toBe(false);
    expect((await call(endpoint, `/${id}`)).status).toBe(404);
    const items = { items: [{ role: "user", content: "Hello" }] };
    for (const refused of [
      await post(endpoint, { conversation }),
      await endpoint.post(`/conversations/${conversation}/items`, items),
    ])
      expect(await refusalOf(refused)).toMatchObject({
        status: 400,
        code: "array_above_max_length",
        param: "conversation",
        message: expect.stringContaining("storedTurnsMax"),
      });
  });

  test("a conversation of stored turns lets other requests in between where many of its turns are read and put at once", async () => {
    const { record } = await storing();
    const kept = keptWith(gateway.store.peppers);
    const [conversation, turns] = [newToken("conv_"), Array.from({ length: 20 }, () => chainOf(1))];
    await kept.put(record.id, conversation, "{}");
    let betweens = 0;
    const between = (): void => {
      betweens += 1;
      if (isAtWork) setImmediate(between);
    };
    let isAtWork = true;
    setImmediate(between);
    const works = turns.map(async ({ id, text }) => {
      await kept.turnsOf(record.id, conversation);
      await kept.putTurn(record.id, { id, text, conversation });
    });
    await Promise.all(works);
    isAtWork = false;
    expect((await kept.turnsOf(record.id, conversation))?.size).toBe(turns.length);
    expect(betweens).toBeGreaterThan(turns.length);
  });

  test("a conversation of stored turns finds the place of a turn in one step, however many turns end at once", async () => {
    const { record } = await storing();
    const conversation = newToken("conv_");
    const kept = keptWith(gateway.store.peppers);
    await kept.put(record.id, conversation, "{}");
    const turns = Array.from({ length: 50 }, () => ({ ...chainOf(1), conversation }));
    const { responses } = gateway.store;
    using put = vi.spyOn(responses, "put");
    using find = vi.spyOn(responses, "find");
    expect(await Promise.all(turns.map((turn) => kept.store(record.id, turn)))).toEqual(turns.map(() => true));
    expect([put.mock.calls.length, find.mock.calls.length]).toEqual([2 * turns.length, 0]);
    const placed = await kept.turnsOf(record.id, conversation);
    expect(new Set(placed?.values())).toEqual(new Set(turns.map(({ id }) => id)));
    // A resumed answer is stored again by the gateway where it is resumed.
    expect(await Promise.all(turns.map((turn) => kept.store(record.id, turn)))).toEqual(turns.map(() => true));
    expect((await kept.turnsOf(record.id, conversation))?.size).toBe(turns.length);
  });

  test("a conversation of stored turns takes room as if it arrived with its request, so that small requests fill no memory", async () => {
    const { endpoint, record } = await storing();
    const id = await keep(record.id, 2);
    const { responses } = gateway.store;
    using _large = vi.spyOn(responses, "bytesOf").mockResolvedValue(8_000_000);
    const find = responses.find.bind(responses);
    const gate = Promise.withResolvers<void>();
    using _held = vi.spyOn(responses, "find").mockImplementation(async (key, ids) => {
      if (ids[0] !== id) await gate.promise;
      return find(key, ids);
    });
    const statusOf = async (): Promise<number> => (await post(endpoint, { previous_response_id: id })).status;
    const asked = Array.from({ length: 20 }, statusOf);
    expect(await Promise.race(asked)).toBe(503);
    gate.resolve();
    expect(new Set(await Promise.all(asked))).toEqual(new Set([404, 503]));
    expect(await Promise.all(Array.from({ length: 8 }, statusOf))).toEqual(Array(8).fill(404));
  });

  test("a conversation of stored turns without its beginning is refused, and no turn is left out in silence", async () => {
    const { endpoint, record } = await storing();
    expect(await refusalOf(post(endpoint, { previous_response_id: await keep(record.id, 2) }))).toMatchObject({
      status: 404,
      code: "response_not_found",
    });
  });

  test("a conversation of stored turns names a wrong item by its place in the request, and not by that among all turns", async () => {
    const { endpoint } = await storing();
    const { id } = await make(endpoint);
    const input = [
      { role: "user", content: "a" },
      { type: "function_call_output", call_id: "c", output: "b" },
    ];
    const going = await post(endpoint, { previous_response_id: id, input });
    expect((await errorOf(going)).param).toBe("input[1].call_id");
  });
});

test("a request that reads stored things takes one of the requests of its key a minute, whatever it reads", async () => {
  const reading = [
    "/{response}",
    "/{response}/input_items",
    "/../conversations/{conversation}",
    "/../conversations/{conversation}/items",
  ];
  for (const path of reading) {
    const { endpoint, record } = await gateway.issue({ storesResponses: true, limits: { requestsPerMinute: 2 } });
    const [conversation, { id, text }] = [newToken("conv_"), chainOf(1)];
    const kept = keptWith(gateway.store.peppers);
    await kept.put(record.id, conversation, JSON.stringify({ id: conversation }));
    await kept.store(record.id, { id, text, conversation });
    const read = () => call(endpoint, path.replace("{response}", id).replace("{conversation}", conversation));
    expect([(await read()).status, (await read()).status]).toEqual([200, 200]);
    const refused = await read();
    expect(await refusalOf(refused)).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
    expect(refused.headers.get("x-ratelimit-remaining-requests")).toBe("0");
  }
});

test("a request that reads stored things takes room as a body does, so that many at once fill no memory", async () => {
  const { endpoint, record } = await storing();
  const { id, text } = chainOf(1);
  await keptWith(gateway.store.peppers).store(record.id, { id, text });
  const gate = Promise.withResolvers<void>();
  const find = gateway.store.responses.find.bind(gateway.store.responses);
  using _held = vi.spyOn(gateway.store.responses, "find").mockImplementation(async (key, ids) => {
    await gate.promise;
    return find(key, ids);
  });
  const reads = Array.from({ length: 60 }, async () => (await call(endpoint, `/${id}`)).status);
  expect(await Promise.race(reads)).toBe(503);
  gate.resolve();
  expect(new Set(await Promise.all(reads))).toEqual(new Set([200, 503]));
  expect((await call(endpoint, `/${id}`)).status).toBe(200);
});

test("a request that reads stored things reads the turns of its page alone, also behind an item", async () => {
  const { endpoint, record } = await storing();
  const conversation = newToken("conv_");
  const kept = keptWith(gateway.store.peppers);
  await kept.put(record.id, conversation, "{}");
  for (let turn = 0; turn < 30; turn += 1) {
    const id = newToken("resp_");
    const input = JSON.stringify([{ role: "user", content: `turn ${turn}`, ...(turn === 20 && { id: "mine" }) }]);
    await kept.store(record.id, {
      id,
      text: writeTurn(id, { before: [], input }, `{"id":"${id}","output":[]}`),
      conversation,
    });
  }
  using find = vi.spyOn(gateway.store.responses, "find");
  const pageOf = async (query: string) => {
    find.mockClear();
    const answer = await call(endpoint, `/../conversations/${conversation}/items?limit=5${query}`);
    const { data, last_id, has_more } = z
      .object({ data: z.array(z.looseObject({})), last_id: z.string(), has_more: z.boolean() })
      .parse(await answer.json());
    const read = find.mock.calls.flatMap(([, ids]) => ids).filter((id) => id.startsWith("resp_")).length;
    return { texts: data.map(({ content }) => Object(content)[0].text), last_id, has_more, read };
  };
  const turns = (...numbers: number[]) => numbers.map((number) => `turn ${number}`);
  const last = await pageOf("");
  expect(last).toMatchObject({ texts: turns(29, 28, 27, 26, 25), has_more: true, read: 6 });
  expect(await pageOf(`&after=${last.last_id}`)).toMatchObject({ texts: turns(24, 23, 22, 21, 20), read: 7 });
  expect(await pageOf("&order=asc&after=mine")).toMatchObject({ texts: turns(21, 22, 23, 24, 25), has_more: true });
  expect(await pageOf("&after=mine")).toMatchObject({ texts: turns(19, 18, 17, 16, 15), has_more: true });
  expect(await refusalOf(await call(endpoint, `/../conversations/${conversation}/items?after=other`))).toMatchObject({
    status: 400,
    param: "after",
    message: expect.stringContaining("an item of this conversation"),
  });
});

test("a request that reads stored things for a model that is not there reads no turns", async () => {
  const { endpoint, record } = await storing();
  const { id, text } = chainOf(1);
  await keptWith(gateway.store.peppers).store(record.id, { id, text });
  using find = vi.spyOn(gateway.store.responses, "find");
  expect(await refusalOf(await post(endpoint, { model: "none", previous_response_id: id }))).toMatchObject({
    status: 404,
    code: "model_not_found",
    param: "model",
  });
  expect(find).not.toHaveBeenCalled();
});

describe("a response that is not stored after all", () => {
  const lastOf = async (answer: Response, isStream: boolean): Promise<unknown[]> => {
    const text = await answer.text();
    if (!isStream) return [JSON.parse(text)];
    const events = text.split("\n\n").filter((each) => /^event: response\./m.test(each));
    const responses = events.map((each) => JSON.parse(each.slice(each.indexOf("\ndata: ") + 7)).response);
    return [responses[0], responses.at(-1)];
  };
  const noStore = { store: false, status: "completed" };

  test.each([false, true])(
    "a response that is not stored after all because it is too large is answered and says so, with stream %s",
    async (stream) => {
      const { endpoint } = await storing();
      const tooLong = "a".repeat(storedResponseBytesMax);
      const answer = await post(endpoint, { input: `/script tokens=1\n${tooLong}`, stream });
      expect([answer.status, answer.headers.get("x-trunkline-ignored")]).toEqual([200, "store"]);
      for (const each of await lastOf(answer, stream)) expect(each).toMatchObject({ store: false });
      // With its answer only this one is too large.
      const nearly = "a".repeat(storedResponseBytesMax - 200);
      const answers = await lastOf(await post(endpoint, { input: `/script tokens=1\n${nearly}`, stream }), stream);
      if (stream) expect(answers[0]).toMatchObject({ store: true });
      expect(answers.at(-1)).toMatchObject(noStore);
    },
  );

  test("a response that is not stored after all because the site has no room is answered and says so, and a conversation is refused by the setting", async () => {
    await using full = await startGatewayInProcess({
      logLevel: "warn",
      env: { TRUNKLINE_STORE_RESPONSES: "on", TRUNKLINE_STORE_RESPONSES_BYTES_MAX: String(mib) },
    });
    const { endpoint } = await full.issue();
    const made = await make(endpoint, { input: `/script tokens=1\n${"a".repeat(mib - 4_096)}` });
    expect(made.store).toBe(true);
    for (const stream of [false, true]) {
      const answer = await post(endpoint, { input: `/script tokens=1\n${"a".repeat(8_192)}`, stream });
      expect((await lastOf(answer, stream)).at(-1)).toMatchObject(noStore);
    }
    expect(full.logged.join("")).toContain("TRUNKLINE_STORE_RESPONSES_BYTES_MAX");
    const filling = { metadata: { filling: "a".repeat(500) } };
    expect(
      await refusalOf(
        until(async () => [await begin(endpoint, filling)].find(({ status }) => status !== 200), {
          what: "a conversation to be refused",
        }),
      ),
    ).toMatchObject({
      status: 429,
      code: "insufficient_quota",
      message: expect.stringContaining("TRUNKLINE_STORE_RESPONSES_BYTES_MAX"),
    });
    expect((await call(endpoint, `/${made.id}`, "DELETE")).status).toBe(200);
    expect((await begin(endpoint, filling)).status).toBe(200);
  });

  test.each([
    ["whole", false, {}],
    ["streamed", true, {}],
    ["resumable", true, { "x-trunkline-resumable": "1" }],
  ])(
    "a response that is not stored after all because the store is away is answered and says so, %s",
    async (_, stream, headers) => {
      const { endpoint } = await storing();
      const away = new Fault("backend_unavailable", { message: "away" });
      using put = vi.spyOn(gateway.store.responses, "put").mockRejectedValue(away);
      const tools = [{ type: "function", name: "f", parameters: { type: "object", default: { store: true } } }];
      const metadata = { '"store":true': '\u2028"store":true' };
      const answer = await post(endpoint, { stream, metadata, tools }, headers);
      const last = (await lastOf(answer, stream)).at(-1);
      expect(put).toHaveBeenCalledOnce();
      expect(last).toMatchObject({ ...noStore, metadata, tools });
      expect(gateway.logged.join("")).toContain("a response was not stored");
    },
  );

  test("a response that is not stored after all is gone on from as the store says: with the store away it is no 404", async () => {
    const { endpoint } = await storing();
    const { id } = await make(endpoint);
    const away = new Fault("backend_unavailable", { message: "away" });
    using _find = vi.spyOn(gateway.store.responses, "find").mockRejectedValue(away);
    expect((await call(endpoint, `/${id}`)).status).toBe(503);
    expect((await post(endpoint, { previous_response_id: id })).status).toBe(503);
  });
});

test("a response is stored for as long as the operator says", async () => {
  using wall = vi.spyOn(clock, "wall");
  const days = { TRUNKLINE_STORE_RESPONSES: "on", TRUNKLINE_STORE_RESPONSES_DAYS: "1" };
  await using short = await startGatewayInProcess({ env: days });
  const { endpoint } = await short.issue({ ttlMs: 10 * 86_400_000 });
  const { id } = await make(endpoint);
  expect((await call(endpoint, `/${id}`)).status).toBe(200);
  const nowMs = Date.now();
  wall.mockImplementation(() => nowMs + 86_400_000 + 1_000);
  expect((await call(endpoint, `/${id}`)).status).toBe(404);
  wall.mockRestore();
});

test("a conversation of another key and one that never was get the same words", async () => {
  const [mine, yours] = [await storing(), await storing()];
  const { id: other } = (await (await begin(yours.endpoint)).json()) as { id: string };
  const told = [];
  for (const id of [other, newToken("conv_")]) {
    const at = `/../conversations/${id}`;
    const body = { items: [{ role: "user", content: "Hi" }] };
    const ways = [
      call(mine.endpoint, at),
      call(mine.endpoint, `${at}/items`),
      call(mine.endpoint, `${at}/items`, "POST", body),
      call(mine.endpoint, at, "DELETE"),
      post(mine.endpoint, { conversation: id }),
    ];
    told.push(await Promise.all(ways.map(async (way) => [(await way).status, (await errorOf(await way)).message])));
  }
  expect(told[0]).toEqual(told[1]);
  expect(told[0]?.map(([status]) => status)).toEqual([404, 404, 404, 404, 404]);
  const unkept = await gateway.issue();
  expect(await refusalOf(begin(unkept.endpoint))).toMatchObject({ status: 403, code: "insufficient_permissions" });
});

test("a conversation has ids of its own: no path serves its parts, and no response is taken for one", async () => {
  const { endpoint } = await storing();
  const items = [{ role: "user", content: "Hi" }];
  const { id } = (await (await begin(endpoint, { items })).json()) as { id: string };
  const { id: responseId } = await make(endpoint, { conversation: id });
  const input = [{ type: "item_reference", id: `msg_${responseId.slice("resp_".length)}0` }];
  const ways: readonly Promise<Response>[] = [
    ...[id, `${id}.1`].flatMap((each) => [call(endpoint, `/${each}`), call(endpoint, `/${each}/input_items`)]),
    ...[id, `${id}.1`].map((each) => call(endpoint, `/${each}`, "DELETE")),
    ...[`${id}.1`, responseId].flatMap((each) => [
      call(endpoint, `/../conversations/${each}`),
      call(endpoint, `/../conversations/${each}/items`),
      call(endpoint, `/../conversations/${each}`, "DELETE"),
      post(endpoint, { conversation: each, input }),
    ]),
    post(endpoint, { previous_response_id: id, metadata: { conversation: id } }),
  ];
  const statuses = await Promise.all(ways.map(async (way) => (await way).status));
  expect(new Set(statuses)).toEqual(new Set([404]));
  const listed = await call(endpoint, `/../conversations/${id}/items`);
  expect(((await listed.json()) as { data: object[] }).data).toHaveLength(3);
});

test("a conversation is refused by its size before it is read, and by the number of its metadata", async () => {
  const { endpoint } = await storing();
  expect(
    await refusalOf(await begin(endpoint, { items: [{ role: "user", content: "x".repeat(storedResponseBytesMax) }] })),
  ).toMatchObject({ status: 413, message: /storedResponseBytesMax/ });
  const metadata = Object.fromEntries(Array.from({ length: 17 }, (_, place) => [`m${place}`, "a"]));
  expect(await refusalOf(await begin(endpoint, { metadata }))).toMatchObject({ status: 400, param: "metadata" });
});

test("a conversation names what it ignores, and takes one of the requests of its key", async () => {
  const { endpoint } = await gateway.issue({ storesResponses: true, limits: { requestsPerMinute: 1 } });
  const begun = await begin(endpoint, { colour: "blue" });
  expect([begun.status, begun.headers.get("x-trunkline-ignored")]).toEqual([200, "colour"]);
  expect(await refusalOf(begin(endpoint))).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
});
