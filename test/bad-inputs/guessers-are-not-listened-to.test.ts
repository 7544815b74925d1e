import { afterAll, beforeAll, expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { badKeysPerMinuteMax } from "../../services/gateway/keys/bad-keys.ts";
import { Endpoint } from "../harness/endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { Operator } from "../harness/operator.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { exchange } from "./exchange.ts";

const stateDir = folderOfTests();
let gateway: GatewayInProcess;
let key: string;
beforeAll(async () => {
  // Made before the gateway starts: news of a key make it ask for that key again.
  await using before = await startGatewayInProcess({ stateDir });
  key = (await before.issue()).endpoint.key;
  gateway = await startGatewayInProcess({ stateDir });
});
afterAll(() => gateway[Symbol.asyncDispose]());

const guesses = (count: number): string =>
  Array.from(
    { length: count },
    () => `GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${mintKeyToken().reveal()}\r\n\r\n`,
  ).join("");

/** Sends this many wrong keys, each of which costs a question to the store, and returns what they were told. */
async function guess(count: number): Promise<readonly number[]> {
  const batch = 200;
  const statuses: number[] = [];
  for (let sent = 0; sent < count; sent += batch) {
    const exchanged = await exchange(gateway.baseUrl, { bytes: guesses(batch), answers: batch, afterwards: "open" });
    statuses.push(...exchanged.answers.map(({ status }) => status));
  }
  return statuses;
}

test("a guesser is told 401, or 503 in a flood, and whoever has a key is served from the same address", async () => {
  const endpoint = new Endpoint({ baseUrl: gateway.baseUrl, key });
  expect((await endpoint.models()).status).toBe(200);
  const statuses = await guess(2 * badKeysPerMinuteMax);
  expect(statuses.filter((status) => status !== 401 && status !== 503)).toEqual([]);
  expect(statuses).toContain(503);
  expect((await endpoint.models()).status).toBe(200);
});

test("a valid key that its gateway has not seen is served from an address that sent hundreds of wrong keys", async () => {
  await guess(badKeysPerMinuteMax);
  const { endpoint } = await gateway.issue();
  expect((await endpoint.models()).status).toBe(200);
});

test("a valid admin key is served from an address that sent hundreds of wrong keys", async () => {
  await using operator = await Operator.on({ stateDir });
  const { token } = await operator.issue({ kind: "admin" });
  const ask = async (admin: string): Promise<number> => {
    const headers = { authorization: `Bearer ${admin}` };
    return (await fetch(`${gateway.operationsUrl}/admin/v1/keys`, { headers })).status;
  };
  for (let sent = 0; sent < badKeysPerMinuteMax + 5; sent += 1) expect(await ask(mintKeyToken().reveal())).toBe(401);
  expect(await ask(token.reveal())).toBe(200);
});
