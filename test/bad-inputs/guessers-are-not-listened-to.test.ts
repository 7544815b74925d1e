import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { badKeysPerMinuteMax } from "../../services/gateway/access/bad-keys.ts";
import { Endpoint, errorIn } from "../harness/endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { exchange } from "./exchange.ts";

let stateDir: string;
let gateway: GatewayInProcess;
let key: string;
beforeAll(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "trunkline-guessers-"));
  // Made before the gateway starts: news of a key make it ask for that key again.
  await using before = await startGatewayInProcess({ stateDir });
  key = (await before.issue()).endpoint.key;
  gateway = await startGatewayInProcess({ stateDir });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await rm(stateDir, { recursive: true });
});

const guesses = (count: number): string =>
  Array.from(
    { length: count },
    () => `GET /v1/models HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${mintKeyToken().reveal()}\r\n\r\n`,
  ).join("");

test("whoever guesses keys is soon told to wait, and whoever has a key is served from the same address", async () => {
  const endpoint = new Endpoint({ baseUrl: gateway.baseUrl, key });
  expect((await endpoint.models()).status).toBe(200);
  const batch = 200;
  const answers = [];
  for (let sent = 0; sent < 2 * badKeysPerMinuteMax; sent += batch) {
    const exchanged = await exchange(gateway.baseUrl, { bytes: guesses(batch), answers: batch, afterwards: "open" });
    answers.push(...exchanged.answers);
  }
  const invalid = answers.filter(({ status }) => status === 401);
  const waits = answers.filter(({ status }) => status === 429);
  expect(invalid.length + waits.length).toBe(answers.length);
  expect(waits.length).toBeGreaterThanOrEqual(batch);
  const last = answers.at(-1);
  expect(errorIn(last?.body ?? "")).toMatchObject({ code: "rate_limit_exceeded", type: "requests" });
  expect(Number(last?.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await endpoint.models()).status).toBe(200);
});
