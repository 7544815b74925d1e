import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { shownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startFleet, type Fleet } from "../harness/start-fleet.ts";
import { trunkline, type CommandResult, type Settings } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

/** Longer than a gateway takes to call a silent machine offline. */
const longerThanSilenceMs = 10_000;

describe.skipIf(lentOnly("nats", "redis"))("`trunkline status` and `trunkline route`", () => {
  let fleet: Fleet;
  let settings: Settings;
  beforeEach(async () => {
    fleet = await startFleet({ machines: { attic: { models: ["scripted"] } } });
    settings = await fleet.operatorSettings();
  });
  afterEach(() => fleet[Symbol.asyncDispose]());

  const run = (...args: string[]): Promise<CommandResult> => trunkline(args, settings);
  const metrics = async (): Promise<string> =>
    (await fetch(`${fleet.gateways[0]?.operationsUrl ?? ""}/metrics`)).text();
  async function attic() {
    const { stdout } = await run("status", "--json");
    return shownFleetMachine.parse(JSON.parse(stdout).machines[0]);
  }

  test("say that the broker is away while NATS is gone, and call no machine offline", async () => {
    await fleet.nats.kill();
    await until(async () => (await metrics()).includes('trunkline_machines{state="offline"} 1'), {
      what: "the silence to be long enough for a machine that is away",
      timeoutMs: longerThanSilenceMs,
    });
    const status = await run("status");
    expect(status.stdout).toMatch(/^attic +unknown .* the broker is away, so this gateway hears no machine$/m);
    expect(status.stdout).not.toMatch(/offline|not heard/);
    expect(status.stderr).toMatch(
      /^trunkline: No machine is ready: the broker is away for \d+ s: NATS cannot be reached\.\n$/,
    );
    expect(status.exitCode).toBe(69);
    const route = await run("route", "scripted");
    expect(route.stdout).toMatch(/^ +- {2}attic .* the broker is away, so this gateway hears no machine$/m);
    expect(route.stderr).toMatch(/^trunkline: No machine would take it\. A client reads: .*\(backend_unavailable\)\n$/);
    expect(route.exitCode).toBe(1);
    expect((await errorOf(await fleet.endpoint.chat({ model: "scripted", says: "Hello" }))).code).toBe(
      "backend_unavailable",
    );
    await fleet.nats.restart();
    await until(async () => (await attic()).takes_work, { what: "the machine to be back", timeoutMs: 20_000 });
  });

  test("show no slot in use of a machine that was killed under its jobs", async () => {
    const stream = await fleet.endpoint.stream({ model: "scripted", says: "/script tokens=5000 delay_ms=20" });
    await until(async () => (await attic()).running === 1, { what: "the job to be told of" });
    await fleet.agent("attic").kill();
    await stream.over;
    const away = { what: "the machine to be away", timeoutMs: longerThanSilenceMs };
    await until(async () => (await attic()).status === "offline", away);
    expect(await attic()).toMatchObject({ running: 0, queued: 0 });
  });

  test("call a machine that drains draining, and so does the error of a request that it does not take", async () => {
    const leaving = new AbortController();
    const asked = { model: "scripted", says: "/script tokens=5000 delay_ms=20 nonce=abc" };
    const stream = await fleet.endpoint.stream(asked, leaving.signal);
    await until(() => stream.text.includes("abc-1 "), { what: "the first tokens" });
    fleet.agent("attic").askToStop();
    await until(async () => (await attic()).state === "draining", { what: "the machine to drain" });
    const why = "draining: it finishes its jobs and takes no new one";
    expect((await run("status")).stdout).toMatch(new RegExp(`^attic +draining .* ${why}$`, "m"));
    const route = await run("route", "scripted", "--json");
    expect(JSON.parse(route.stdout)).toMatchObject({
      refusal: { code: "shutting_down" },
      machines: [{ machine: "attic", rank: null, reason: "draining", why }],
    });
    const refused = await fleet.endpoint.chat({ model: "scripted", says: "Hello" });
    expect(refused.status).toBe(503);
    expect(await errorOf(refused)).toMatchObject({
      code: "shutting_down",
      message: expect.stringContaining("draining"),
    });
    leaving.abort();
    await stream.over;
  });
});
