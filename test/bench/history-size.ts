/**
 * Measures the history of requests: its size in Redis and in SQLite, with 20 busy series and at worst, and the time that one
 * ended request costs. usage: node test/bench/history-size.ts
 */
import { statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type History, openHistory, slotLengths } from "#shared/history/history.ts";
import { Row, Sums, seriesOf } from "#shared/history/sums.ts";
import { connectRedis } from "#shared/process/redis-connection.ts";
import { supplyOlderNodes } from "#shared/process/older-nodes.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";
import { findServers } from "../harness/find-servers.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { SeededRandom } from "../harness/seeded-random.ts";

supplyOlderNodes();
const seeded = new SeededRandom(53);
const random = (): number => seeded.next();
const { minute, hour } = slotLengths;

const endMs = Math.floor(Date.now() / hour.ms) * hour.ms;

/** A row of a busy series: waits and rates spread over their histograms as a log-normal distribution spreads them. */
function busyRow(requests: number): Row {
  const row = new Row();
  const spread = (from: number, middle: number): void => {
    const weights = Array.from({ length: 17 }, (_, index) => Math.exp(-((index - middle) ** 2) / 8));
    const all = weights.reduce((sum, weight) => sum + weight, 0);
    for (const [index, weight] of weights.entries())
      row.bump(from + index, Math.round(((requests * weight) / all) * (0.5 + random())));
  };
  row.bump(0, requests);
  row.bump(1, Math.round(requests * 4_000 * (0.5 + random())));
  row.bump(2, Math.round(requests * 2_000 * (0.5 + random())));
  row.bump(3, Math.round(requests * 500 * (0.5 + random())));
  spread(4, 6 + random() * 3);
  spread(21, 7 + random() * 3);
  for (const code of ["client_closed", "agent_offline", "rate_limit_requests"])
    if (random() < 0.3) row.fail(code, 1 + Math.floor((random() * requests) / 20));
  return row;
}

function busySums(models: number, machines: number, requests: number): Sums {
  const sums = new Sums();
  const names = [
    "",
    ...Array.from({ length: models }, (_, index) =>
      seriesOf("model", `Organisation-${index}/Model-${index}-32B-Instruct-Q4_K_M`),
    ),
    ...Array.from({ length: machines }, (_, index) => seriesOf("machine", `machine-in-the-attic-${index}`)),
  ];
  for (const name of names) sums.rowOf(name).merge(busyRow(Math.round(requests * (0.5 + random()))));
  return sums;
}

/** Fills 90 days of hours and two days of minutes. */
async function fill(history: History, models: number, machines: number): Promise<void> {
  let sequence = 0;
  const add = (at: number, requests: number) =>
    history.add({
      minute: at,
      sums: busySums(models, machines, requests),
      gateway: "a-gateway",
      sequence: (sequence += 1),
    });
  for (let at = endMs - hour.keptMs; at < endMs - minute.keptMs; at += hour.ms) await add(at, 3_600);
  for (let at = endMs - minute.keptMs; at < endMs; at += minute.ms) await add(at, 60);
}

async function inRedis(models: number, machines: number): Promise<number> {
  const server = await startRedisServer({ found: (await findServers()).redis });
  const redis = await connectRedis({ url: server.url, commandTimeoutMs: 10_000 });
  const used = async () =>
    Number(/used_memory:(\d+)/.exec(await redis.run("measure", (client) => client.info("memory")))?.[1]);
  const before = await used();
  await fill(openHistory({ kind: "redis", redis }), models, machines);
  // Redis drops minutes by the clock, and these were written at once.
  const old = Array.from(
    { length: 88 * 24 },
    (_, hours) => `history:60:${(endMs - minute.keptMs) / 1_000 - (hours + 1) * 3_600}`,
  );
  await redis.run("drop old minutes", (client) => client.unlink(old));
  const bytes = (await used()) - before;
  redis.close();
  await server.stop();
  return bytes;
}

async function inSqlite(models: number, machines: number): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-history-"));
  const database = openStateDatabase(folder);
  const size = () => statSync(join(folder, "trunkline.db")).size;
  const before = size();
  await fill(openHistory({ kind: "sqlite", database }), models, machines);
  database.close();
  const bytes = size() - before;
  await rm(folder, { recursive: true });
  return bytes;
}

function costOfOne(): number {
  const sums = new Sums();
  const ended = { requests: 1, failed: 0, promptTokens: 900, completionTokens: 120, answered: 1, durationMs: 4_000 };
  const rounds = 1_000_000;
  const beganAtMs = performance.now();
  for (let round = 0; round < rounds; round += 1)
    sums.add(
      { ...ended, firstTokenMs: round % 3_000, model: `model-${round % 20}` },
      { machine: `machine-${round % 6}`, cachedTokens: 100, code: "ok" },
    );
  return ((performance.now() - beganAtMs) * 1_000) / rounds;
}

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
for (const [title, models, machines] of [
  ["20 busy series (12 models, 8 machines)", 12, 8],
  ["at worst (64 models, 64 machines)", 64, 64],
] as const) {
  console.log(
    `${title}: Redis ${megabytes(await inRedis(models, machines))}, SQLite ${megabytes(await inSqlite(models, machines))}`,
  );
}
costOfOne();
console.log(`one ended request: ${costOfOne().toFixed(2)} µs`);
