import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { fleetListing, type ShownFleetMachine, shownRoute } from "#shared/fleet/shown-fleet.ts";
import { changeMachine } from "#shared/records/change-machine.ts";
import { setRoute } from "../harness/set-records.ts";
import { joinTtlMsMax, makeJoin } from "#shared/records/join-machine.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { Lifecycle } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { joinLineText, parseJoinLine } from "#shared/protocol/pairing.ts";
import type { Pairing } from "#shared/site/pairing-file.ts";
import { agentConfig } from "../../services/agent/config.ts";
import { joinSite } from "../../services/agent/machine/join-site.ts";
import { PairedAgent } from "../../services/agent/paired-agent.ts";
import { errorIn, type Endpoint } from "../harness/endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import { RawTunnel } from "../harness/raw-tunnel.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";

let stateDir: string;
let gatewayDir: string;
let gateway: GatewayInProcess;
let endpoint: Endpoint;
beforeEach(async () => {
  stateDir = folderOfTest();
  gatewayDir = join(stateDir, "gateway");
  const env = { TRUNKLINE_SCRIPTED_MODELS: "scripted:embed" };
  gateway = await startGatewayInProcess({ stateDir: gatewayDir, logLevel: "info", env });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  ({ endpoint } = await gateway.issue());
});

const means = () => ({ ...gateway.store, actor: { by: "the operator" } });

/** Pairs a machine by a join line and starts its agent, which offers a model that the gateway's own machine lacks. */
async function startAttic(): Promise<{ readonly pairing: Pairing; readonly lifecycle: Lifecycle }> {
  const { line } = await makeJoin({ name: "attic", ttlMs: joinTtlMsMax }, means());
  const joining = parseJoinLine(joinLineText({ ...line, origin: new URL(gateway.baseUrl).origin }));
  if (joining === undefined) throw new Error("the join line cannot be read");
  const settings = {
    TRUNKLINE_RUNTIME: "scripted",
    TRUNKLINE_SCRIPTED_MODELS: "scripted",
    TRUNKLINE_STATE_DIR: stateDir,
  };
  const pairing = await joinSite(joining, { stateDir, replace: false, environment: {}, clock, say: () => undefined });
  const log = createLog({ level: "silent", name: "agent" });
  const lifecycle = new Lifecycle({ clock, log });
  const config = agentConfig(settings);
  await new PairedAgent({ config, pairing, environment: {}, lifecycle, clock, log }).start();
  await endpoint.untilListed("scripted");
  onTestFinished(() => lifecycle.stop(0));
  return { pairing, lifecycle };
}

/** Asks the admin API, as the console does. */
async function told(path: string): Promise<unknown> {
  const { endpoint: admin } = await gateway.issue({ kind: "admin" });
  return (await admin.at(`${gateway.operationsUrl}/admin/v1`).get(path)).json();
}

async function attic(): Promise<ShownFleetMachine | undefined> {
  return fleetListing.parse(await told("/fleet")).data.find(({ machine }) => machine === "attic");
}

test("a paired machine that lacks the targets of a route is not in its way, and is not called away", async () => {
  await startAttic();
  await setRoute("fast", [{ model: "scripted:embed" }], { ...gateway.store, clock, actor: { by: "the operator" } });
  const route = await until(
    async () => {
      const shown = shownRoute.parse(await told("/route?model=fast&kind=embed"));
      return shown.targets !== null && shown;
    },
    { what: "the gateway to know the route" },
  );
  expect(route.machines.map(({ rank, machine }) => [rank, machine === "attic"])).toEqual([[1, false]]);
});

test("a paired machine is cordoned since its cordon, and after a restart is away with what it offered", async () => {
  const { lifecycle } = await startAttic();
  await until(async () => ((await attic())?.state_ms_ago ?? 0) > 1_000, { what: "a second" });
  const cordonedAtMs = performance.now();
  await changeMachine("attic", { action: "machine_cordoned", reason: "new fans" }, means());
  const cordoned = await until(
    async () => {
      const shown = await attic();
      return shown?.pairing === "cordoned" && shown;
    },
    { what: "the cordon" },
  );
  expect(cordoned.state_ms_ago).toBeLessThan(performance.now() - cordonedAtMs + 1);
  await lifecycle.stop(0);
  await gateway.stop(0);
  await gateway[Symbol.asyncDispose]();
  gateway = await startGatewayInProcess({ stateDir: gatewayDir });
  expect(await attic()).toMatchObject({ status: "offline", runtime: cordoned.runtime, models: 1, slots: 0 });
});

test("a paired machine answers a chat through the gateway's own port", async () => {
  await startAttic();
  expect(await endpoint.answer({ model: "scripted", says: "/script tokens=50 delay_ms=2" })).not.toBe("");
  const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=200 delay_ms=1" });
  expect(await stream.over).toBe("closed");
  expect(stream.done).toBe(true);
});

test("a paired machine that is revoked loses its tunnel and its streams within a second, and its agent ends", async () => {
  const { lifecycle } = await startAttic();
  const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=100000 delay_ms=5" });
  await until(() => stream.events.length > 3, { what: "the stream to run" });
  const revokedAtMs = performance.now();
  await changeMachine("attic", { action: "machine_revoked" }, means());
  await stream.over;
  expect(errorIn(stream.events.at(-1) ?? "").code).toBe("agent_offline");
  expect(await lifecycle.failed).toMatchObject({ message: expect.stringContaining("has revoked this machine") });
  expect(performance.now() - revokedAtMs).toBeLessThan(1_500);
});

test("a paired machine whose credential a second process uses is cordoned, and its record says from where", async () => {
  const { pairing } = await startAttic();
  await using thief = await RawTunnel.open(pairing.origin);
  await thief.prove(pairing, newToken());
  const record = await until(
    async () => {
      const found = await gateway.store.machines.find("attic");
      return found?.cordon !== undefined && found;
    },
    { what: "the cordon" },
  );
  expect(record.cordon?.reason).toBe("credential_used_twice: from 127.0.0.1 and from 127.0.0.1");
  expect(record.cordon?.by).toMatch(/^gateway /);
});

test("a paired machine finishes its streams before its gateway stops, which then waits for nothing", async () => {
  await startAttic();
  const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=200 delay_ms=5" });
  await until(() => stream.events.length > 3, { what: "the stream to run" });
  const stopped = gateway.stop(10_000);
  expect(await stream.over).toBe("closed");
  expect(stream.done).toBe(true);
  const overAtMs = performance.now();
  await stopped;
  expect(performance.now() - overAtMs).toBeLessThan(2_500);
});
