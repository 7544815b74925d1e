import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { shownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { refusalOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { MetricsText } from "../harness/metrics-text.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import type { Settings } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";

const noticedWithinMs = 3_000;
const healsWithinMs = 10_000;
const answersWithinMs = 200;
/** Longer than a gateway takes to call a silent machine offline. */
const longerThanSilenceMs = 10_000;

const readiness = z.strictObject({
  ready: z.boolean(),
  checks: z.strictObject({ serving: z.boolean(), broker: z.boolean(), keys: z.boolean() }),
  reasons: z.array(z.string()),
});

describe.skipIf(lentOnly("nats", "redis"))("when what a gateway stands on is away", () => {
  let fleet: Fleet;
  let settings: Settings;
  beforeAll(async () => {
    fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    settings = await fleet.operatorSettings();
  });
  afterAll(() => fleet[Symbol.asyncDispose]());

  const run = (...args: string[]) => trunklineHere(args, settings);
  const attic = async () => shownFleetMachine.parse(JSON.parse((await run("status", "--json")).out).machines[0]);

  async function told() {
    const askedAtMs = performance.now();
    const response = await fetch(`${fleet.gateway.operationsUrl}/readyz`);
    const body = readiness.parse(await response.json());
    return { status: response.status, ...body, tookMs: performance.now() - askedAtMs };
  }
  const scrape = (): Promise<MetricsText> => MetricsText.scrape(fleet.gateway.operationsUrl);

  test("readyz and the metrics tell of a killed NATS, and that it is back", async () => {
    expect(await told()).toMatchObject({ status: 200, ready: true, reasons: [] });
    const before = await scrape();
    expect(before.value("trunkline_broker_connected")).toBe(1);
    expect(before.value("trunkline_machines", { state: "ready" })).toBe(1);
    await fleet.nats.kill();
    const notReady = async () => {
      const now = await told();
      return now.status === 503 && now;
    };
    const away = await until(notReady, { what: "the gateway to say that it is not ready", timeoutMs: noticedWithinMs });
    expect(away.checks).toEqual({ serving: true, broker: false, keys: true });
    expect(away.reasons).toEqual([expect.stringMatching(/^the broker is away for \d s: NATS cannot be reached$/)]);
    expect((await fetch(`${fleet.gateway.operationsUrl}/readyz`, { method: "HEAD" })).status).toBe(503);
    const during = await scrape();
    expect(during.value("trunkline_broker_connected")).toBe(0);
    expect(during.samples("trunkline_broker_round_trip_seconds")).toEqual([]);
    expect(during.value("trunkline_key_store_up")).toBe(1);
    const counted = async () => (await told()).reasons[0]?.startsWith("the broker is away for 2 s");
    await until(counted, { what: "the seconds to be counted", timeoutMs: noticedWithinMs });
    expect((await fleet.endpoint.chat({ model: "scripted", says: "/script tokens=1" })).status).toBe(503);
    expect(await fleet.endpoint.models()).toMatchObject({ status: 503, code: "backend_unavailable" });
    await fleet.nats.restart();
    const ready = async () => (await told()).ready;
    await until(ready, { what: "the gateway to be ready again", timeoutMs: healsWithinMs });
    const after = async () => {
      const now = await scrape();
      return now.value("trunkline_machines", { state: "ready" }) === 1 && now;
    };
    const healed = await until(after, { what: "the machine to be there", timeoutMs: healsWithinMs });
    expect(healed.value("trunkline_broker_reconnects_total")).toBe(1);
    expect(healed.value("trunkline_requests_total", { outcome: "backend_unavailable" })).toBe(2);
  });

  test("`trunkline status` and `trunkline route` say that the broker is away while NATS is gone, and call no machine offline", async () => {
    await fleet.nats.kill();
    await until(async () => (await scrape()).value("trunkline_machines", { state: "offline" }) === 1, {
      what: "the silence to be long enough for a machine that is away",
      timeoutMs: longerThanSilenceMs,
    });
    const status = await run("status");
    expect(status.out).toMatch(/^attic +unknown .* the broker is away, so this gateway hears no machine$/m);
    expect(status.out).not.toMatch(/offline|not heard/);
    expect(status.err).toMatch(
      /^trunkline: No machine is ready: the broker is away for \d+ s: NATS cannot be reached\.\n$/,
    );
    expect(status.exitCode).toBe(69);
    const route = await run("route", "scripted");
    expect(route.out).toMatch(/^ +- {2}attic .* the broker is away, so this gateway hears no machine$/m);
    expect(route.err).toMatch(/^trunkline: No machine would take it\. A client reads: .*\(backend_unavailable\)\n$/);
    expect(route.exitCode).toBe(1);
    const refused = fleet.endpoint.chat({ model: "scripted", says: "Hello" });
    expect(await refusalOf(refused)).toMatchObject({ code: "backend_unavailable" });
    await fleet.nats.restart();
    await until(async () => (await attic()).takes_work, { what: "the machine to be back", timeoutMs: 20_000 });
  });

  test("frames that had to be asked for again after a restart are counted", async () => {
    const stream = await fleet.endpoint.stream({ model: "scripted", says: "/script tokens=150 delay_ms=20 nonce=abc" });
    await until(() => stream.text.includes("abc-10 "), { what: "the first tokens" });
    await fleet.nats.restart();
    await stream.over;
    expect(stream.done).toBe(true);
    expect((await scrape()).value("trunkline_replays_total")).toBeGreaterThan(0);
  });

  test("readyz answers in time while Redis hangs, and the metrics tell of it", async () => {
    await fleet.redis.freeze();
    const hangs = async () => (await scrape()).value("trunkline_key_store_up") === 0;
    await until(hangs, { what: "the metrics to tell of it", timeoutMs: noticedWithinMs });
    const answers = [await told(), await told(), await told()];
    // The fastest is what it takes: this process and the gateway share two cores with whatever else runs.
    expect(Math.min(...answers.map(({ tookMs }) => tookMs))).toBeLessThan(answersWithinMs);
    // A gateway that has just begun may not have heard the store at all, and then known keys do not go on.
    for (const { ready, reasons } of answers) {
      expect(reasons).toEqual(
        ready ? [] : [expect.stringMatching(/^the key store does not answer within 150 ms, and/)],
      );
    }
    await fleet.redis.thaw();
    const up = async () => (await scrape()).value("trunkline_key_store_up") === 1;
    await until(up, { what: "Redis to be back", timeoutMs: healsWithinMs });
  });

  test("`trunkline status` and `trunkline route` call a machine that drains draining, and so does the error of a request that it does not take", async () => {
    const leaving = new AbortController();
    const asked = { model: "scripted", says: "/script tokens=5000 delay_ms=20 nonce=abc" };
    const stream = await fleet.endpoint.stream(asked, leaving.signal);
    await until(() => stream.text.includes("abc-1 "), { what: "the first tokens" });
    fleet.agent("attic").askToStop();
    await until(async () => (await attic()).state === "draining", { what: "the machine to drain" });
    const why = "draining: it finishes its jobs and takes no new one";
    expect((await run("status")).out).toMatch(new RegExp(`^attic +draining .* ${why}$`, "m"));
    const route = await run("route", "scripted", "--json");
    expect(JSON.parse(route.out)).toMatchObject({
      refusal: { code: "shutting_down" },
      machines: [{ machine: "attic", rank: null, reason: "draining", why }],
    });
    const refused = await refusalOf(fleet.endpoint.chat({ model: "scripted", says: "Hello" }));
    expect(refused).toMatchObject({ status: 503, code: "shutting_down", message: expect.stringContaining("draining") });
    leaving.abort();
    await stream.over;
    await fleet.agent("attic").exit();
    await fleet.startAgent("attic");
    await until(async () => (await attic()).takes_work, { what: "the machine to be back" });
  });

  test("`trunkline status` and `trunkline route` show no slot in use of a machine that was killed under its jobs", async () => {
    const stream = await fleet.endpoint.stream({ model: "scripted", says: "/script tokens=5000 delay_ms=20" });
    await until(async () => (await attic()).running === 1, { what: "the job to be told of" });
    await fleet.agent("attic").kill();
    await stream.over;
    const away = { what: "the machine to be away", timeoutMs: longerThanSilenceMs };
    await until(async () => (await attic()).status === "offline", away);
    expect(await attic()).toMatchObject({ running: 0, queued: 0 });
  });
});
