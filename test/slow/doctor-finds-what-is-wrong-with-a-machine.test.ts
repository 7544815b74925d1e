import packageJson from "../../package.json" with { type: "json" };
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { changeMachine } from "#shared/records/change-machine.ts";
import { joinTtlMsMax, makeJoin } from "#shared/records/join-machine.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { Lifecycle } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { joinLineText, parseJoinLine } from "#shared/protocol/pairing.ts";
import { type Pairing, pairingFile, writePairing } from "#shared/site/pairing-file.ts";
import { agentConfig } from "../../services/agent/config.ts";
import { joinSite } from "../../services/agent/machine/join-site.ts";
import { PairedAgent } from "../../services/agent/paired-agent.ts";
import { machineChecks } from "../../services/cli/doctor/machine-checks.ts";
import { type CheckResult, runChecks } from "../../services/cli/doctor/run-checks.ts";
import { thisHost } from "../../services/cli/service/service-host.ts";
import { FaultyProxy } from "../harness/faulty-proxy.ts";
import { type GatewayInProcess, startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";
import { makeSelfSigned } from "../harness/self-signed.ts";

const { version } = packageJson;
let gateway: GatewayInProcess;
let proxy: FaultyProxy;
let stateDir: string;
let pairing: Pairing;
const dependencies = () => ({ ...gateway.store, actor: { by: "the operator" } });

beforeAll(async () => {
  gateway = await startGatewayInProcess({ logLevel: "info" });
  // A store takes machines once a key has founded it.
  await gateway.issue();
  proxy = await FaultyProxy.start(new URL(gateway.baseUrl).origin);
});
afterAll(async () => {
  await proxy[Symbol.asyncDispose]();
  await gateway[Symbol.asyncDispose]();
});
beforeEach(async () => {
  proxy.faults = {};
  stateDir = folderOfTest();
  const { line } = await makeJoin({ name: `attic-${newToken().toLowerCase()}`, ttlMs: joinTtlMsMax }, dependencies());
  const joining = parseJoinLine(joinLineText({ ...line, origin: proxy.origin }));
  if (joining === undefined) throw new Error("the join line cannot be read");
  pairing = await joinSite(joining, { stateDir, replace: false, environment: {}, clock, say: () => undefined });
});

/** Runs the checks of the machine, and returns them by name. */
async function doctor(settings: Readonly<Record<string, string>> = {}): Promise<Readonly<Record<string, CheckResult>>> {
  const environment = { TRUNKLINE_STATE_DIR: stateDir, TRUNKLINE_RUNTIME: "scripted", ...settings };
  const host = await thisHost(environment);
  const checks = machineChecks({ environment, clock, version: "0.0.1", host, manager: undefined });
  const results = await runChecks(checks, { clock, onDone: () => undefined });
  return Object.fromEntries(results.map((result) => [result.name, result]));
}

const outcomes = (results: Readonly<Record<string, CheckResult>>) =>
  Object.fromEntries(Object.values(results).map(({ name, outcome }) => [name, outcome]));

const well = {
  settings: "ok",
  "state folder": "ok",
  pairing: "ok",
  service: "skipped",
  name: "ok",
  certificate: "ok",
  clock: "ok",
  site: "ok",
  // This test's own version is no gateway's.
  tunnel: "warning",
  streams: "ok",
  "model servers": "ok",
  "answers that go on": "skipped",
};

test("a well machine has no finding but its version, and its agent keeps its tunnel", async () => {
  const log = createLog({ level: "silent", name: "agent" });
  const lifecycle = new Lifecycle({ clock, log });
  const config = agentConfig({ TRUNKLINE_RUNTIME: "scripted", TRUNKLINE_STATE_DIR: stateDir });
  await new PairedAgent({ config, pairing, environment: {}, lifecycle, clock, log }).start();
  await until(() => existsSync(config.proofsFile), { what: "the proofs of the demonstration" });
  const before = gateway.logged.length;
  const results = await doctor();
  expect(outcomes(results)).toEqual({ ...well, "answers that go on": "ok" });
  expect(results["tunnel"]?.finding).toMatch(
    /admits this machine as 'attic-.*; it runs version \d.*, and this is 0\.0\.1/,
  );
  expect(results["tunnel"]?.remedy).toContain(`/agent.tgz?${version}" agent install`);
  const since = gateway.logged.slice(before).join("");
  expect(since).not.toMatch(/connected|connection is closed|credential/);
  await lifecycle.stop(1_000);
});

test.each([
  {
    fault: "a clock that is ten minutes ahead",
    plant: { clockAheadMs: 600_000 },
    check: "clock",
    outcome: "failed",
    says: /600 s behind|599 s behind|601 s behind/,
    remedy: /NTP/,
  },
  {
    fault: "a clock that is ten seconds behind",
    plant: { clockAheadMs: -10_000 },
    check: "clock",
    outcome: "warning",
    says: /ahead of/,
    remedy: /NTP/,
  },
  {
    fault: "a proxy that buffers",
    plant: { buffers: true },
    check: "streams",
    outcome: "failed",
    says: /holds streams back: 4 events that were sent within 750 ms arrived within \d+ ms/,
    remedy: /proxy_buffering off/,
  },
  {
    fault: "a proxy without WebSockets",
    plant: { dropsUpgrades: true },
    check: "tunnel",
    outcome: "failed",
    says: /HTTP 400 at \/agent\/v1/,
    remedy: /let proxies in front pass WebSockets on/,
  },
])("$fault is found", async ({ plant, check, outcome, says, remedy }) => {
  proxy.faults = plant;
  const results = await doctor();
  expect(outcomes(results)).toEqual({ ...well, [check]: outcome });
  expect(results[check]?.finding).toMatch(says);
  expect(results[check]?.remedy).toMatch(remedy);
});

/** The gateway follows changes of its records within a second. */
const tunnelThat = (says: string): Promise<CheckResult> =>
  until(
    async () => {
      const { tunnel } = await doctor();
      return tunnel?.finding.includes(says) ? tunnel : undefined;
    },
    { what: `a tunnel that ${says}` },
  );

test("a revoked machine is told so, and how to come back", async () => {
  await changeMachine(pairing.machine, { action: "machine_revoked" }, dependencies());
  const tunnel = await tunnelThat("has revoked this machine");
  expect(tunnel).toMatchObject({ outcome: "failed", remedy: expect.stringContaining("Pair it again") });
});

test("a cordoned machine is told so, with the reason", async () => {
  await changeMachine(pairing.machine, { action: "machine_cordoned", reason: "its fan is loud" }, dependencies());
  const tunnel = await tunnelThat("no jobs (its fan is loud)");
  expect(tunnel).toMatchObject({ outcome: "warning", remedy: expect.stringContaining("machines uncordon attic-") });
});

test("a site with another id is found, and nothing that depends on it is tried", async () => {
  writePairing(stateDir, { ...pairing, site: newToken() });
  const results = await doctor();
  expect(outcomes(results)).toEqual({ ...well, site: "failed", tunnel: "skipped", streams: "skipped" });
  expect(results["site"]?.finding).toContain("is another site than expected");
});

test("a name that no server knows is found", async () => {
  writePairing(stateDir, { ...pairing, origin: "https://nowhere.invalid" });
  const { name, tunnel } = await doctor();
  expect(name).toMatchObject({ outcome: "failed", finding: expect.stringContaining("nowhere.invalid") });
  expect(tunnel?.outcome).toBe("skipped");
});

test("a pairing that others may read is found", async () => {
  chmodSync(pairingFile(stateDir), 0o644);
  const { pairing: found } = await doctor();
  expect(found).toMatchObject({ outcome: "warning", remedy: `Run: chmod 600 '${pairingFile(stateDir)}'` });
});

test("a machine without a pairing is told how to pair", async () => {
  rmSync(pairingFile(stateDir));
  const results = await doctor();
  expect(results["pairing"]).toMatchObject({ outcome: "failed", remedy: expect.stringContaining("machines pair") });
  expect(Object.keys(results)).not.toContain("tunnel");
});

test("the answers that each model goes on with are told, and why not with others", async () => {
  const file = agentConfig({ TRUNKLINE_STATE_DIR: stateDir }).proofsFile;
  const earlier = { model: "qwen3", continues: [], differs: {} };
  const latest = {
    model: "qwen3",
    continues: ["plain"],
    differs: { thought: "it thinks again, after 8 of 48 tokens" },
  };
  writeFileSync(file, JSON.stringify({ one: earlier, two: latest }));
  expect((await doctor())["answers that go on"]).toMatchObject({
    outcome: "ok",
    finding: "qwen3: plain, not thought: it thinks again, after 8 of 48 tokens.",
  });
  const { "answers that go on": off } = await doctor({ TRUNKLINE_CONTINUE: "off" });
  expect(off).toMatchObject({ outcome: "skipped", finding: expect.stringContaining("TRUNKLINE_CONTINUE") });
});

test("a model server that is named and away is found", async () => {
  const results = await doctor({ TRUNKLINE_RUNTIME: "auto", TRUNKLINE_RUNTIME_URL: "http://127.0.0.1:9" });
  expect(results["model servers"]).toMatchObject({
    outcome: "failed",
    finding: expect.stringContaining("127.0.0.1:9"),
  });
});

test("a setting that cannot work is found, and one that is misspelt", async () => {
  expect((await doctor({ TRUNKLINE_RUNTIME: "gpt" }))["settings"]).toMatchObject({ outcome: "failed" });
  const { settings } = await doctor({ TRUNKLINE_RUNTIM_URL: "x" });
  expect(settings).toMatchObject({ outcome: "warning", finding: expect.stringContaining("TRUNKLINE_RUNTIME_URL") });
});

test("a certificate that only itself signed is found, and is good where the pairing has its pin", async () => {
  const tls = await makeSelfSigned();
  await using site = await startGatewayInProcess({ env: tls });
  const origin = new URL(site.baseUrl).origin;
  writePairing(stateDir, { ...pairing, origin });
  expect((await doctor())["certificate"]).toMatchObject({
    outcome: "failed",
    finding: expect.stringContaining("unknown authority"),
    remedy: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
  });
  writePairing(stateDir, { ...pairing, origin, certificate: readFileSync(tls.TRUNKLINE_TLS_CERT, "utf8") });
  expect((await doctor())["certificate"]).toMatchObject({
    outcome: "warning",
    finding: "The certificate is the pinned one, and valid for 1 days.",
  });
});
