import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { alertOperations } from "#shared/admin/alert-operations.ts";
import { openAlarmStore } from "#shared/alerts/alarm-store.ts";
import { Operator } from "../harness/operator.ts";
import { type Fleet, startFleet } from "../harness/start-fleet.ts";
import { startUp } from "../harness/start-trunkline.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const { listAlarms } = alertOperations;

/** All times of alarms are a tenth: a round is a second, and a failed call is repeated after one and a half. */
const env = { TRUNKLINE_TIME_SCALE: "0.1" };

interface Received {
  readonly id: string;
  readonly type: string;
  readonly kind: string;
  readonly subject: string;
}

/** A receiver of alerts that answers as a test says; undefined is no answer. */
async function startReceiver(answer: (call: number) => number | undefined) {
  const received: Received[] = [];
  const held: ServerResponse[] = [];
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { type, data } = (await json(request)) as { type: string; data: { kind: string; subject: string } };
    received.push({ id: String(request.headers["webhook-id"]), type, kind: data.kind, subject: data.subject });
    const status = answer(received.length);
    if (status === undefined) held.push(response);
    else response.writeHead(status).end();
  };
  const server = createServer((request, response) => void receive(request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const told = (count: number) => until(() => received.length >= count, { what: `${count} calls`, timeoutMs: 40_000 });
  return { url: `http://127.0.0.1:${port}/secret-path`, received, held, told };
}

async function startWatchedFleet(url: string, on: readonly string[]): Promise<Fleet> {
  const gatewayEnv = { TRUNKLINE_ALERT_HOSTS: "127.0.0.1" };
  const fleet = await startFleet({ gateways: 2, machines: { attic: {}, cellar: {} }, env, gatewayEnv });
  onTestFinished(() => fleet[Symbol.asyncDispose]());
  const admin = await fleet.admin();
  const added = await admin.post("/alerts", { name: "pager", to: url, on, after: "1s" });
  expect(added.status).toBe(201);
  return fleet;
}

test("of two gateways one calls when a machine is killed, repeats what failed, and calls when the machine is back", async () => {
  const receiver = await startReceiver((call) => (call === 1 ? 500 : 200));
  const fleet = await startWatchedFleet(receiver.url, ["machine-away"]);
  const attic = { kind: "machine-away", subject: "attic" };
  await fleet.agent("attic").kill();
  await receiver.told(2);
  expect(receiver.received.slice(0, 2)).toMatchObject([
    { type: "alarm.began", ...attic },
    { type: "alarm.began", ...attic },
  ]);
  expect(receiver.received[0]?.id).toBe(receiver.received[1]?.id);
  await fleet.startAgent("attic");
  await receiver.told(3);
  expect(receiver.received[2]).toMatchObject({ type: "alarm.over", ...attic });
  await using operator = await Operator.on({ redisUrl: fleet.redis.url });
  const alarms = openAlarmStore(operator.store.state);
  const isOver = async () => (await alarms.read()).alarms.length === 0;
  await until(isOver, { what: "nothing to be left to tell" });
  expect(receiver.received.length).toBe(3);
  const logs = await Promise.all(fleet.gateways.map((each) => each.stderr()));
  expect(logs.join("")).toContain("an alert target was called");
  expect(logs.join("")).not.toContain("secret-path");
}, 60_000);

test("a gateway that is killed while it calls is away, and the other one calls in its place under the same id", async () => {
  const receiver = await startReceiver((call) => (call === 2 ? undefined : 200));
  const fleet = await startWatchedFleet(receiver.url, ["machine-away", "gateway-away"]);
  await fleet.agent("attic").kill();
  const calls = async () => {
    const logs = await Promise.all(fleet.gateways.map((each) => each.stderr()));
    return fleet.gateways.filter((_, at) => logs[at]?.includes("an alert target was called"));
  };
  const [caller] = await until(async () => (await calls()).length > 0 && calls(), {
    what: "a call",
    timeoutMs: 40_000,
  });
  await fleet.agent("cellar").kill();
  await receiver.told(2);
  await caller?.kill();
  await receiver.told(4);
  const [, before, ...after] = receiver.received;
  expect(before).toMatchObject({ type: "alarm.began", kind: "machine-away", subject: "cellar" });
  expect(after).toHaveLength(2);
  expect(after).toContainEqual(before);
  expect(after).toContainEqual(expect.objectContaining({ type: "alarm.began", kind: "gateway-away" }));
}, 60_000);

test("a gateway that is stopped says goodbye, and nobody is called about it", async () => {
  const receiver = await startReceiver(() => 200);
  const fleet = await startWatchedFleet(receiver.url, ["machine-away", "gateway-away"]);
  await using operator = await Operator.on({ redisUrl: fleet.redis.url });
  const { state } = operator.store;
  const known = async () => Object.values((await openAlarmStore(state).read()).gateways).length;
  await until(async () => (await known()) === 2, { what: "both gateways to be known" });
  await fleet.gateways[0]?.terminate();
  await until(async () => (await known()) === 1, { what: "the stopped gateway to be forgotten", timeoutMs: 40_000 });
  expect(receiver.received).toEqual([]);
}, 60_000);

test("an up in one process tells that a key has used its budget, and that the budget has grown", async () => {
  const receiver = await startReceiver(() => 200);
  const stateDir = folderOfTest();
  await using up = await startUp({
    ...env,
    TRUNKLINE_STATE_DIR: stateDir,
    TRUNKLINE_KEY_PEPPER: testPepper,
    TRUNKLINE_ALERT_HOSTS: "127.0.0.1",
  });
  await using operator = await Operator.on({ stateDir });
  const budget = (tokens: number) => ({ limits: { budget: { tokens, per: "month" as const } } });
  const app = await operator.issue({ name: "app", ...budget(100) });
  const { token } = await operator.issue({ kind: "admin" });
  const admin = up.endpoint.at(`${up.operationsUrl}/admin/v1`).withKey(token.reveal());
  const added = await admin.post("/alerts", { name: "pager", to: receiver.url, on: ["budget", "disk", "errors"] });
  expect(added.status).toBe(201);
  await up.endpoint.withKey(app.token.reveal()).answer({ model: "scripted", says: "/script tokens=85" });
  await receiver.told(1);
  const share = { kind: "budget", subject: expect.stringMatching(/^key app \(.*\), 80 % of tokens for 20/) };
  expect(receiver.received).toEqual([{ id: expect.any(String), type: "alarm.began", ...share }]);
  const open = async () => listAlarms.answer.parse(await (await admin.get("/alarms")).json()).data;
  await until(async () => (await open())[0]?.told[0]?.outcome === "sent", { what: "the alarm to be listed as told" });
  expect(await open()).toMatchObject([{ kind: "budget", told: [{ alert: "pager", outcome: "sent" }] }]);
  await operator.change(app.record.id, { action: "changed", terms: budget(1_000) });
  await receiver.told(2);
  expect(receiver.received[1]).toMatchObject({ type: "alarm.over", ...share });
  expect(await open()).toEqual([]);
}, 60_000);
