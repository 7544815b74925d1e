import { expect, test } from "vitest";
import type { AnswerTo } from "#shared/admin/admin-call.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { Operator } from "../harness/operator.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import { startTwoGateways } from "../harness/two-gateways.ts";

type Answer = AnswerTo<"GET /history">;

async function historyAt(
  { operationsUrl }: { readonly operationsUrl: string },
  adminKey: string,
  query = "",
): Promise<Answer> {
  const headers = { authorization: `Bearer ${adminKey}` };
  const response = await fetch(`${operationsUrl}/admin/v1/history${query}`, { headers });
  expect(response.status).toBe(200);
  return (await response.json()) as Answer;
}

const ask = (endpoint: Endpoint) =>
  endpoint.stream({ model: "scripted", says: "/script tokens=5" }).then(({ over }) => over);

test("several gateways add up to one history, and one that stops has written all", async () => {
  await using site = await startTwoGateways();
  const { endpoints } = await site.issue();
  const admin = (await site.operator.issue({ kind: "admin" })).token.reveal();
  await ask(endpoints[0]);
  await ask(endpoints[1]);
  await ask(endpoints[1]);
  const [here, there] = site.gateways;
  expect((await historyAt(here, admin)).all.total.requests).toBe(1);
  await there.stop(1_000);
  const { all, data, known_since: since } = await historyAt(here, admin, "?by=model");
  expect(all.total).toMatchObject({ requests: 3, failed: 0, completion_tokens: 15 });
  expect(all.total.first_token_ms?.p95).toBeGreaterThan(0);
  expect(all.steps.reduce((sum, { requests }) => sum + requests, 0)).toBe(3);
  expect(data.map(({ of, total }) => [of, total.requests])).toEqual([["scripted", 3]]);
  expect(Date.now() - Date.parse(since ?? "")).toBeLessThan(600_000);
});

test("a gateway that starts again on its folder has the history of the one before", async () => {
  const stateDir = folderOfTest();
  await using first = await startGatewayInProcess({ stateDir });
  const { endpoint } = await first.issue();
  await ask(endpoint);
  await endpoint.chat({ model: "nobody-has-it", says: "Hello" });
  await first.stop(1_000);
  await using second = await startGatewayInProcess({ stateDir });
  const admin = (await second.issue({ kind: "admin" })).endpoint.key;
  const { all, data } = await historyAt(second, admin, "?by=machine&step=3600");
  expect(all.total.requests).toBe(2);
  expect(all.total.failures).toEqual({ model_not_found: 1 });
  expect(data).toHaveLength(1);
});

test("a gateway that is killed has lost only what ended since its last write", async () => {
  const stateDir = folderOfTest();
  const start = () => startUp({ TRUNKLINE_STATE_DIR: stateDir, TRUNKLINE_KEY_PEPPER: testPepper });
  await using operator = await Operator.on({ stateDir });
  const [admin, model] = [await operator.issue({ kind: "admin" }), await operator.issue()];
  await using killed = await start();
  const endpoint = killed.endpoint.withKey(model.token.reveal());
  await ask(endpoint);
  expect((await historyAt(killed, admin.token.reveal())).all.total.requests).toBe(1);
  await ask(endpoint);
  await killed.kill();
  await using next = await start();
  expect((await historyAt(next, admin.token.reveal())).all.total.requests).toBe(1);
});
