import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { RequestRecord } from "#shared/requests/request-record.ts";
import { openRequests } from "#shared/requests/request-records.ts";
import type { UsageRow } from "#shared/usage/usage.ts";
import { lentOnly } from "../harness/found-servers.ts";
import type { Asked } from "../harness/load/ask-over-http.ts";
import { Load } from "../harness/load/load.ts";
import { Operator } from "../harness/operator.ts";
import { startFleet } from "../harness/start-fleet.ts";
import { startUp, type UpProcess } from "../harness/start-trunkline.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { testPepper } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const model = "scripted";

/** A folder for `trunkline up`, which is killed and started again on it. */
async function place() {
  const stateDir = folderOfTest();
  const start = async (): Promise<UpProcess> => {
    const up = await startUp({ TRUNKLINE_STATE_DIR: stateDir, TRUNKLINE_KEY_PEPPER: testPepper });
    onTestFinished(() => up[Symbol.asyncDispose]());
    return up;
  };
  /** The sums that the running `up` has written down of answers under way. */
  const noted = (): readonly UsageRow[] => {
    using database = new DatabaseSync(join(stateDir, "trunkline.db"), { readOnly: true });
    const rows = database.prepare("SELECT usage FROM running").all();
    return rows.map(({ usage }): UsageRow => JSON.parse(String(usage)));
  };
  const untilNoted = (fits: (sum: UsageRow) => boolean = () => true): Promise<UsageRow> =>
    until(() => noted().find(fits), { what: "an answer under way to be written down" });
  return { stateDir, start, noted, untilNoted };
}

async function recordsOf(operator: Operator, keyId: string): Promise<readonly RequestRecord[]> {
  const { found } = await openRequests(operator.store.state).find({ keyIds: [keyId] }, { limit: 100 });
  return found.map(({ record }) => record);
}

test("an up that is killed books its finished answers exactly, and those under way as they were a moment before", async () => {
  const { stateDir, start, noted, untilNoted } = await place();
  const up = await start();
  await using operator = await Operator.on({ stateDir });
  const { token, record } = await operator.issue({ limits: { budget: { tokens: 100_000, per: "month" } } });
  const endpoint = up.endpoint.withKey(token.reveal());
  await endpoint.answer({ model, says: "/script tokens=7" });
  const stream = await endpoint.stream({ model, says: "/script tokens=100000 delay_ms=5" });
  const sums = await untilNoted(({ completionTokens }) => completionTokens > 100);
  await up.kill();
  await stream.over;
  const delivered = stream.text.split(" ").length - 1;

  await start();
  const booked = await operator.usageSum(record.id);
  expect(booked).toMatchObject({ requests: 2, failed: 1, answered: 1, promptTokens: 2 + sums.promptTokens });
  expect(booked?.completionTokens).toBeGreaterThanOrEqual(7 + sums.completionTokens);
  expect(booked?.completionTokens).toBeLessThanOrEqual(7 + delivered + 1);
  const [cut] = await recordsOf(operator, record.id);
  expect(cut).toMatchObject({ code: "gateway_lost", endedBy: "gateway", asked: model, streamed: true });
  expect(cut?.completionTokens).toBe((booked?.completionTokens ?? 0) - 7);
  await until(() => noted().length === 0, { what: "nothing to be left under way" });
});

test("an answer whose last byte a client has is in the books, also if its gateway is killed at that byte", async () => {
  const { stateDir, start } = await place();
  await using operator = await Operator.on({ stateDir });
  const { token } = await operator.issue();
  let up = await start();
  const kills = 3;
  for (let kill = 0; kill < kills; kill += 1) {
    const finished: Asked[] = [];
    const killed = Promise.withResolvers<void>();
    const load = new Load({
      baseUrl: up.endpoint.baseUrl,
      key: token.reveal(),
      wish: (index) => ({ tokens: 5 + (index % 9), delayMs: 3, streamed: index % 2 === 0 }),
      pace: { atOnce: 16 },
      onSettled: (asked) => {
        if (asked.outcome !== "exact" || finished.push(asked) !== 100) return;
        void load.end();
        void up.kill().then(killed.resolve, killed.reject);
      },
    });
    await Promise.all([killed.promise, load.over]);
    up = await start();
    const requests = openRequests(operator.store.state);
    for (const { requestId = "", received } of finished) {
      const tokens = received.text.split(" ").length - 1;
      expect(await requests.get(requestId)).toMatchObject({ code: "ok", completionTokens: tokens });
    }
  }
});

test("a second up that cannot start on the folder of a running one books nothing of it", async () => {
  const { stateDir, start, untilNoted } = await place();
  const up = await start();
  await using operator = await Operator.on({ stateDir });
  const { token, record } = await operator.issue();
  const leaving = new AbortController();
  const asked = { model, says: "/script tokens=100000 delay_ms=5" };
  const stream = await up.endpoint.withKey(token.reveal()).stream(asked, leaving.signal);
  await untilNoted();
  const { port } = new URL(up.endpoint.baseUrl);
  const settings = { TRUNKLINE_STATE_DIR: stateDir, TRUNKLINE_KEY_PEPPER: testPepper, TRUNKLINE_PORT: port };
  await expect(startUp(settings)).rejects.toThrow(port);
  expect(await operator.usageSum(record.id)).toBeUndefined();
  leaving.abort();
  await stream.over;
  expect(await operator.booked(record.id)).toMatchObject({ requests: 1 });
});

test("a second kill books nothing twice", async () => {
  const { stateDir, start, untilNoted } = await place();
  const up = await start();
  await using operator = await Operator.on({ stateDir });
  const { token, record } = await operator.issue();
  const stream = await up.endpoint.withKey(token.reveal()).stream({ model, says: "/script tokens=100000 delay_ms=5" });
  await untilNoted();
  await up.kill();
  await stream.over;
  const again = await start();
  const booked = await operator.usageSum(record.id);
  expect(booked).toMatchObject({ requests: 1, failed: 1 });
  await again.kill();
  await start();
  expect(await operator.usageSum(record.id)).toEqual(booked);
});

test.skipIf(lentOnly("nats", "redis"))(
  "a gateway that is killed leaves it to the others to book what its answers under way used",
  { timeout: 60_000 },
  async () => {
    await using fleet = await startFleet({ gateways: 2, machines: { attic: { models: [model] } } });
    await using operator = await Operator.on({ redisUrl: fleet.redis.url });
    const { token, record } = await operator.issue();
    const stream = await fleet.endpoint
      .withKey(token.reveal())
      .stream({ model, says: "/script tokens=100000 delay_ms=5" });
    const isTold = (): boolean => stream.text.split(" ").length > 500;
    await until(isTold, { what: "500 tokens to be delivered", timeoutMs: 20_000 });
    await fleet.gateway.kill();
    await stream.over;
    const delivered = stream.text.split(" ").length - 1;
    const booked = await until(async () => operator.usageSum(record.id), {
      what: "the other gateway to book the answer",
      timeoutMs: 30_000,
    });
    expect(booked).toMatchObject({ requests: 1, failed: 1, answered: 1 });
    // A token takes 5 ms at least, and the book is told each 100 ms.
    expect(booked.completionTokens).toBeGreaterThan(delivered - 250);
    expect(booked.completionTokens).toBeLessThanOrEqual(delivered + 1);
    const { completionTokens } = booked;
    expect(await recordsOf(operator, record.id)).toMatchObject([
      { code: "gateway_lost", endedBy: "gateway", machine: "attic", completionTokens },
    ]);
  },
);
