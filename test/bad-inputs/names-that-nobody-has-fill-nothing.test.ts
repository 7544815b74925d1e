import { afterAll, beforeAll, expect, test } from "vitest";
import { openUsage } from "#shared/usage/usage.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { until } from "../harness/until.ts";
import { exchange } from "./exchange.ts";
import { postedJson } from "./sent.ts";

const namesSent = 500;

let gateway: GatewayInProcess;
beforeAll(async () => void (gateway = await startGatewayInProcess()));
afterAll(() => gateway[Symbol.asyncDispose]());

test("requests for models that nobody ever had are one row in the books, however many names they make up", async () => {
  const { endpoint, record } = await gateway.issue();
  const bytes = Array.from({ length: namesSent }, (_, place) => {
    const fields = { model: `made-up-${place}`, messages: [{ role: "user", content: "Hello" }] };
    return Buffer.from(postedJson(fields)({ key: endpoint.key }));
  });
  const { answers } = await exchange(gateway.baseUrl, {
    bytes: Buffer.concat(bytes),
    answers: namesSent,
    afterwards: "open",
  });
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([404]));
  const rows = await until(
    async () => {
      const { rows: all } = await openUsage(gateway.store.state).read({ from: "2000-01-01", to: "9999-12-31" });
      const own = all.filter(({ keyId }) => keyId === record.id);
      return own.reduce((sum, { requests }) => sum + requests, 0) === namesSent && own;
    },
    { what: "all of them to be in the books" },
  );
  expect(rows.map(({ model }) => model)).toEqual([null]);
});
