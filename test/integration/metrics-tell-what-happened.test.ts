import { afterEach, beforeEach, expect, test } from "vitest";
import { addTeam } from "../harness/add-team.ts";
import type { Endpoint } from "../harness/endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { until } from "../harness/until.ts";

const route = "/v1/chat/completions";
const inventedNames = 1_000;

let gateway: GatewayInProcess;
let endpoint: Endpoint;
beforeEach(async () => {
  gateway = await startGatewayInProcess();
  ({ endpoint } = await gateway.issue());
});
afterEach(() => gateway[Symbol.asyncDispose]());

const scrape = (): Promise<MetricsText> => MetricsText.scrape(gateway.operationsUrl);

/** The metrics when so many requests have ended: an answer is out a moment before it is counted. */
function after(requests: number): Promise<MetricsText> {
  const look = async () => {
    const told = await scrape();
    return told.value("trunkline_requests_total") === requests && told;
  };
  return until(look, { what: `${requests} requests to be counted` });
}

test("the metrics of a gateway count every request once, by its route, its model, its outcome and whether it was a stream", async () => {
  expect((await scrape()).value("trunkline_requests_total")).toBe(0);
  expect(await endpoint.answer({ model: "scripted", says: "/script tokens=3 nonce=abc" })).toBe("abc-0 abc-1 abc-2 ");
  expect((await endpoint.chat({ model: "absent", says: "Hello!" })).status).toBe(404);
  const whole = await endpoint.stream({ model: "scripted", says: "/script tokens=5 delay_ms=5" });
  await whole.over;
  const broken = await endpoint.stream({ model: "scripted", says: "/script tokens=9 delay_ms=5 fail_at=3" });
  await broken.over;
  expect(broken.events.at(-1)).toContain("upstream_error");
  expect((await endpoint.withKey("nothing").chat({ model: "scripted", says: "Hello!" })).status).toBe(401);
  expect((await endpoint.get("/nowhere")).status).toBe(404);
  const told = await after(6);
  expect(told.samples("trunkline_requests_total")).toEqual(
    [
      { route, model: "scripted", outcome: "ok", streamed: "false" },
      { route, model: "other", outcome: "model_not_found", streamed: "false" },
      { route, model: "scripted", outcome: "ok", streamed: "true" },
      { route, model: "scripted", outcome: "upstream_error", streamed: "true" },
      { route, model: "none", outcome: "key_invalid", streamed: "false" },
      { route: "unknown", model: "none", outcome: "unknown_url", streamed: "false" },
    ].map((labels) => ({ name: "trunkline_requests_total", labels, value: 1 })),
  );
  const model = { model: "scripted" };
  for (const code of ["model_not_found", "upstream_error", "key_invalid", "unknown_url"]) {
    expect([code, told.value("trunkline_faults_total", { code })]).toEqual([code, 1]);
  }
  expect(told.value("trunkline_completion_tokens_total", model)).toBe(3 + 5 + 3);
  expect(told.value("trunkline_prompt_tokens_total", model)).toBeGreaterThanOrEqual(3);
  expect(told.value("trunkline_request_duration_seconds_count", { route })).toBe(5);
  expect(told.value("trunkline_dispatch_duration_seconds_count", model)).toBe(3);
  expect(told.value("trunkline_model_duration_seconds_count", model)).toBe(3);
  expect(told.value("trunkline_time_to_first_token_seconds_count", model)).toBe(2);
  expect(told.value("trunkline_model_first_token_seconds_count", model)).toBe(2);
  expect(told.value("trunkline_open_requests")).toBe(0);
  expect(told.value("trunkline_open_streams")).toBe(0);
  expect(told.value("trunkline_open_jobs")).toBe(0);
});

test("the metrics of a gateway tell the time of the machine and its model apart from Trunkline's own", async () => {
  const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=10 first_ms=300 delay_ms=30" });
  await stream.over;
  const told = await after(1);
  const seconds = (name: string): number => told.value(`trunkline_${name}_seconds_sum`);
  expect(seconds("model_first_token")).toBeGreaterThan(0.29);
  expect(seconds("dispatch_duration")).toBeLessThan(seconds("model_first_token"));
  expect(seconds("time_to_first_token")).toBeCloseTo(seconds("dispatch_duration") + seconds("model_first_token"), 6);
  expect(seconds("model_duration")).toBeCloseTo(seconds("model_first_token") + seconds("token_gap"), 1);
  const gaps = told.value("trunkline_token_gap_seconds_count");
  expect(gaps).toBeGreaterThan(2);
  expect(gaps).toBeLessThanOrEqual(10);
  // Tokens that a busy machine delivers together have no gap.
  expect(seconds("token_gap")).toBeGreaterThan(0.03);
});

test("the metrics of a gateway tell the tokens and the refusals of each team", async () => {
  await addTeam(gateway.store, "research", { limits: { budget: { tokens: 10, per: "day" } } });
  const research = await gateway.issue({ team: "research" });
  await endpoint.answer({ model: "scripted", says: "/script tokens=3" });
  await research.endpoint.answer({ model: "scripted", says: "/script tokens=7" });
  expect((await research.endpoint.chat({ model: "scripted", says: "/script tokens=7" })).status).toBe(429);
  const told = await after(3);
  const tokens = (team: string): number => told.value("trunkline_completion_tokens_total", { model: "scripted", team });
  expect([tokens("research"), tokens("none")]).toEqual([7, 3]);
  expect(told.value("trunkline_prompt_tokens_total", { team: "research" })).toBeGreaterThan(0);
  expect(told.samples("trunkline_faults_total").map(({ labels, value }) => ({ ...labels, value }))).toEqual([
    { code: "insufficient_quota", team: "research", value: 1 },
  ]);
});

test("the metrics of a gateway tell of what is under way", async () => {
  const leaving = new AbortController();
  const fields = { model: "scripted", says: "/script tokens=1000 delay_ms=20" };
  const stream = await endpoint.stream(fields, leaving.signal);
  await until(() => stream.text !== "", { what: "the first token" });
  const during = await scrape();
  for (const name of ["requests", "streams", "jobs"]) expect(during.value(`trunkline_open_${name}`)).toBe(1);
  leaving.abort();
  const told = await after(1);
  expect(told.value("trunkline_requests_total", { outcome: "client_closed", streamed: "true" })).toBe(1);
  for (const name of ["requests", "streams"]) expect(told.value(`trunkline_open_${name}`)).toBe(0);
  expect(told.value("trunkline_completion_tokens_total")).toBeGreaterThan(0);
});

test("the metrics of a gateway tell of the machines, the broker, the key store and the process", async () => {
  const told = await scrape();
  expect(told.value("trunkline_machines", { state: "ready" })).toBe(1);
  expect(told.value("trunkline_machines")).toBe(1);
  expect(told.samples("trunkline_machine_slots")).toHaveLength(1);
  expect(told.value("trunkline_machine_slots")).toBeGreaterThan(0);
  for (const name of ["trunkline_broker_connected", "trunkline_key_store_up"]) expect(told.value(name)).toBe(1);
  for (const name of ["trunkline_broker_round_trip_seconds", "trunkline_key_store_round_trip_seconds"]) {
    expect(told.value(name)).toBeGreaterThan(0);
  }
  expect(told.samples("trunkline_event_loop_delay_seconds").map(({ labels }) => labels["quantile"])).toContain("0.99");
  expect(told.value("process_resident_memory_bytes")).toBeGreaterThan(10_000_000);
  expect(told.value("process_cpu_seconds_total")).toBeGreaterThan(0);
});

test("the metrics of a gateway have at most one label more for a thousand models that callers make up", async () => {
  await endpoint.answer({ model: "scripted", says: "/script tokens=1" });
  await endpoint.answer({ model: "scripted:latest", says: "/script tokens=1" });
  const labelsOf = (told: MetricsText): Set<string | undefined> =>
    new Set(
      [...told.families.values()].flatMap(({ samples }) => samples.flatMap(({ labels }) => labels["model"] ?? [])),
    );
  expect(labelsOf(await after(2))).toEqual(new Set(["scripted"]));
  const names = Array.from({ length: inventedNames }, (_, at) => `made-up-${at}"}\n{x="`);
  while (names.length > 0) {
    const statuses = await Promise.all(
      names.splice(-50).map(async (model) => {
        const { status, body } = await endpoint.chat({ model, says: "Hello!" });
        await body?.cancel();
        return status;
      }),
    );
    expect(new Set(statuses)).toEqual(new Set([404]));
  }
  const told = await after(2 + inventedNames);
  expect(labelsOf(told)).toEqual(new Set(["scripted", "other"]));
  expect(told.value("trunkline_requests_total", { model: "other" })).toBe(inventedNames);
});

test("the metrics of a gateway are there in OpenMetrics for whoever accepts it, and in the older form ever after for all others", async () => {
  await endpoint.answer({ model: "scripted", says: "/script tokens=1" });
  await after(1);
  const url = `${gateway.operationsUrl}/metrics`;
  const ask = async (accept: string): Promise<[string | null, MetricsText]> => {
    const response = await fetch(url, { headers: { accept } });
    return [response.headers.get("content-type"), MetricsText.read(await response.text())];
  };
  const prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
  for (const [accept, type, family] of [
    ["*/*", "text/plain; version=0.0.4; charset=utf-8", "trunkline_requests_total"],
    [prometheus, "application/openmetrics-text; version=1.0.0; charset=utf-8", "trunkline_requests"],
    ["text/plain", "text/plain; version=0.0.4; charset=utf-8", "trunkline_requests_total"],
  ] as const) {
    const [told, metrics] = await ask(accept);
    expect(told).toBe(type);
    expect(metrics.families.get(family)?.type).toBe("counter");
    expect(metrics.value("trunkline_requests_total")).toBe(1);
  }
});

test("the metrics of a gateway are asked for with GET or HEAD, on the operations port only", async () => {
  const url = `${gateway.operationsUrl}/metrics`;
  const head = await fetch(url, { method: "HEAD" });
  expect([head.status, head.headers.get("content-type")]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
  expect((await fetch(url, { method: "POST" })).status).toBe(405);
  expect((await fetch(new URL("/metrics", gateway.baseUrl))).status).toBe(404);
});
