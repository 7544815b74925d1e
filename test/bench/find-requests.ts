import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { connectRedis } from "#shared/process/redis-connection.ts";
import type { RequestQuery, WrittenRecord } from "#shared/requests/request-record.ts";
import { openRequests, redisRequestsAt, type RequestRecords } from "#shared/requests/request-records.ts";
import { searchWithinMs } from "#shared/admin/request-operations.ts";
import { openStateDatabase } from "#shared/store/state-database.ts";

/** Measures searches in the records of requests, in both stores: `node test/bench/find-requests.ts --redis redis://127.0.0.1:6379`. */
const { values } = parseArgs({
  options: { records: { type: "string", default: "100000" }, redis: { type: "string" } },
});
const count = Number(values.records);
const fromMs = Date.now() - count * 5_000;

/** A record as a gateway writes it. One in a thousand failed, and one in fifty thousand is of a rare model. */
function recordOf(place: number): string {
  const machine = `gpu-${place % 6}`;
  const cost = { totalMs: 1_200, promptMs: 500, answerMs: 600 };
  const others = [
    { machine: "gpu-7", totalMs: 1_500 },
    { machine: "gpu-8", totalMs: 2_500, reason: "slower" as const },
  ];
  const model = place % 50_000 === 7 ? "rare:70b" : "llama3.2:3b";
  const record: WrittenRecord = {
    id: `req_${String(place).padStart(22, "0")}`,
    at: fromMs + place * 5_000,
    keyId: "abcdefABCDEF",
    address: "10.0.0.7",
    agent: "OpenAI/JS 5.1.0",
    path: "/v1/chat/completions",
    streamed: true,
    asked: model,
    tried: [{ machine, model, atMs: 12, cost, cachedTokens: 100, others }],
    machine,
    model,
    status: place % 1_000 === 3 ? 502 : 200,
    code: place % 1_000 === 3 ? "upstream_error" : "ok",
    endedBy: "machine",
    acceptedMs: 20,
    firstTokenMs: 400,
    totalMs: 5_000,
    promptTokens: 1_200,
    completionTokens: 300,
  };
  return JSON.stringify(record);
}

const queries: Readonly<Record<string, RequestQuery>> = {
  all: {},
  failed: { failed: true },
  machine: { machine: "gpu-3" },
  "longer than 10 s (none)": { longerMs: 10_000 },
  "a rare model": { model: "rare" },
};

async function measure(store: string, records: RequestRecords): Promise<void> {
  for (const [name, query] of Object.entries(queries)) {
    const took: number[] = [];
    let calls = 0;
    let found = 0;
    for (let before: string | undefined; calls === 0 || (before !== undefined && found < 100);) {
      const beganMs = performance.now();
      const page = await records.find(query, { limit: 100, withinMs: searchWithinMs, before });
      took.push(performance.now() - beganMs);
      calls += 1;
      found += page.found.length;
      before = page.next;
    }
    const most = Math.max(...took).toFixed(0);
    console.log(
      `${store}, ${name}: ${found} found, first call ${took[0]?.toFixed(0)} ms, ${calls} calls, the longest ${most} ms`,
    );
  }
}

const folder = mkdtempSync(join(tmpdir(), "find-requests-"));
const database = openStateDatabase(folder);
database.change("write records", (sql) => {
  for (let place = 0; place < count; place += 1)
    sql.run`INSERT INTO requests (id, at, record) VALUES (${`req_${place}`}, ${fromMs + place * 5_000}, ${recordOf(place)})`;
});
await measure("SQLite", openRequests({ kind: "sqlite", database }));
database.close();
rmSync(folder, { recursive: true });

if (values.redis !== undefined) {
  const redis = await connectRedis({ url: values.redis, keyPrefix: "bench:", commandTimeoutMs: 5_000 });
  for (let first = 0; first < count; first += 1_000)
    await redis.pipeline("write records", (batch) =>
      Array.from({ length: 1_000 }, (_, at) => first + at).reduce(
        (writes, at) => writes.xadd(redisRequestsAt, `${fromMs + at * 5_000}-0`, "record", recordOf(at)),
        batch,
      ),
    );
  await measure("Redis", openRequests({ kind: "redis", redis }));
  redis.close();
}
