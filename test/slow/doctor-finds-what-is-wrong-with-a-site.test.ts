import http from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { changeMachine } from "#shared/records/change-machine.ts";
import { joinTtlMsMax, makeJoin } from "#shared/records/join-machine.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { joinLineText, parseJoinLine } from "#shared/protocol/pairing.ts";
import type { Pairing } from "#shared/site/pairing-file.ts";
import { joinSite } from "../../services/agent/machine/join-site.ts";
import { isBelow } from "../../services/cli/doctor/host-checks.ts";
import { type CheckResult, runChecks } from "../../services/cli/doctor/run-checks.ts";
import { siteChecks } from "../../services/cli/doctor/site-checks.ts";
import { FaultyProxy } from "../harness/faulty-proxy.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { freePort } from "../harness/free-port.ts";
import { type GatewayInProcess, startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { startNatsServer } from "../harness/nats-server.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { makeSelfSigned } from "../harness/self-signed.ts";
import { folderOfTest, folderOfTests } from "../harness/temporary-folder.ts";
import { type Settings, testPepper } from "../harness/trunkline-command.ts";

const stateDir = folderOfTests();
let gateway: GatewayInProcess;
let port: number;
beforeAll(async () => {
  port = await freePort();
  gateway = await startGatewayInProcess({ stateDir, env: { TRUNKLINE_PORT: String(port) } });
  await gateway.issue();
});
afterAll(() => gateway[Symbol.asyncDispose]());

let elsewhere: string;
beforeEach(() => void (elsewhere = folderOfTest()));

/** Runs the checks of a site with these settings beside those of the gateway, and returns them by name. */
async function doctor(settings: Settings = {}, paired?: Pairing): Promise<Readonly<Record<string, CheckResult>>> {
  const own = { TRUNKLINE_STATE_DIR: stateDir, TRUNKLINE_PORT: String(port), TRUNKLINE_KEY_PEPPER: testPepper };
  await using site = await siteChecks({ environment: { ...own, ...settings }, clock, version: "0.0.1", paired });
  const results = await runChecks(site.checks, { clock, onDone: () => undefined });
  return Object.fromEntries(results.map((result) => [result.name, result]));
}

const found = (outcome: string, text: string | RegExp) =>
  expect.objectContaining({ outcome, finding: expect.stringMatching(text) });

test("a well site has no finding", async () => {
  const results = await doctor();
  const outcomes = Object.values(results).map(({ name, outcome }) => [name, outcome]);
  expect(outcomes).toEqual([
    ["settings", "ok"],
    ["state folder", "ok"],
    ["store", "ok"],
    ["records", "ok"],
    ["prices", "skipped"],
    ["port", "ok"],
    ["certificate file", "skipped"],
    ["proxies", "ok"],
    ["name", "ok"],
    ["certificate", "ok"],
    ["clock", "ok"],
    ["site", "ok"],
    ["tunnel", "ok"],
    ["streams", "ok"],
    ["machines", "ok"],
  ]);
});

test("paired machines that are away, and those that are cordoned, are named; their hosts look at the site elsewhere", async () => {
  const dependencies = { ...gateway.store, actor: { by: "the operator" } };
  const { line } = await makeJoin({ name: "attic", ttlMs: joinTtlMsMax }, dependencies);
  expect((await doctor())["machines"]).toEqual(found("ok", "No machine is paired"));
  const joining = parseJoinLine(joinLineText({ ...line, origin: new URL(gateway.baseUrl).origin }));
  if (joining === undefined) throw new Error("the join line cannot be read");
  const paired = { stateDir: elsewhere, replace: false, environment: {}, clock, say: () => undefined };
  const pairing = await joinSite(joining, paired);
  const nothingHere = { TRUNKLINE_STATE_DIR: join(elsewhere, "new"), TRUNKLINE_PORT: String(await freePort()) };
  const { port: here, site } = await doctor(nothingHere, pairing);
  expect([here, site]).toEqual([found("skipped", "is free"), found("ok", new URL(gateway.baseUrl).origin)]);
  const { publicKey } = pairing;
  expect((await doctor())["machines"]).toEqual(found("warning", "1 machine is paired; away for more than 30 s: attic"));
  await gateway.store.machines.noteSeen(new Map([[publicKey, { atMs: clock.wall(), runtime: null, models: 0 }]]));
  expect((await doctor())["machines"]).toEqual(
    found("ok", "1 machine is paired, and each was heard within the last 30 s"),
  );
  await changeMachine("attic", { action: "machine_cordoned", reason: "its fan is loud" }, dependencies);
  expect((await doctor())["machines"]).toEqual(found("warning", "cordoned: attic \\(its fan is loud\\)"));
});

test("a public URL that leads to a proxy with faults is found", async () => {
  await using proxy = await FaultyProxy.start(new URL(gateway.baseUrl).origin);
  proxy.faults = { buffers: true, dropsUpgrades: true };
  const results = await doctor({ TRUNKLINE_PUBLIC_URL: proxy.origin });
  expect(results["streams"]).toEqual(found("failed", "holds streams back"));
  expect(results["tunnel"]).toEqual(found("failed", "HTTP 400"));
  expect(results["site"]).toEqual(found("ok", proxy.origin));
});

test("a public URL that leads to another site is found", async () => {
  await using other = await startGatewayInProcess({ stateDir: elsewhere });
  const results = await doctor({ TRUNKLINE_PUBLIC_URL: new URL(other.baseUrl).origin });
  expect(results["site"]).toEqual(found("failed", "is another site than expected"));
});

test("a port that is free, and one that another program has, are told apart", async () => {
  expect((await doctor({ TRUNKLINE_PORT: String(await freePort()) }))["port"]).toEqual(found("skipped", "is free"));
  const server = http.createServer((_, response) => response.writeHead(404, { server: "llama.cpp" }).end("{}"));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  const taken = typeof address === "object" ? String(address?.port) : "";
  const result = (await doctor({ TRUNKLINE_PORT: taken }))["port"];
  server.close();
  expect(result).toEqual(found("failed", /Another program uses port .* \(llama\.cpp\)/));
});

test("a site that was never started has no store, and gets none", async () => {
  const settings = { TRUNKLINE_STATE_DIR: join(elsewhere, "new"), TRUNKLINE_PORT: String(await freePort()) };
  const results = await doctor(settings);
  expect(results["store"]).toEqual(found("skipped", "There is no store yet"));
  expect(results["public url"]).toEqual(found("skipped", "no public URL"));
  expect((await doctor(settings))["state folder"]).toEqual(found("skipped", "is not there yet"));
});

test("a store under another pepper is found", async () => {
  const { store } = await doctor({ TRUNKLINE_KEY_PEPPER: `not ${testPepper}` });
  expect(store).toEqual(found("failed", "made with another pepper"));
  expect(store?.remedy).toContain("TRUNKLINE_KEY_PEPPER");
});

test("a certificate that is not for the public URL is found, and one with another's key", async () => {
  const [tls, other] = await Promise.all([makeSelfSigned("DNS:models.example.org"), makeSelfSigned()]);
  const named = { ...tls, TRUNKLINE_PUBLIC_URL: "https://127.0.0.1:9", TRUNKLINE_HOST: "127.0.0.1" };
  expect((await doctor(named))["certificate file"]).toEqual(found("failed", "is not for 127.0.0.1"));
  const mixed = { ...tls, TRUNKLINE_TLS_KEY: other.TRUNKLINE_TLS_KEY };
  expect((await doctor(mixed))["certificate file"]).toEqual(found("failed", "is not the key of"));
  const soon = { ...tls, TRUNKLINE_PUBLIC_URL: "https://models.example.org:9" };
  expect((await doctor(soon))["certificate file"]).toEqual(found("warning", "valid for 1 days"));
});

describe.skipIf(lentOnly("redis"))("Redis", () => {
  test("Redis that may lose keys at a restart is found, and one that is away", async () => {
    await using redis = await startRedisServer();
    const settings = { TRUNKLINE_REDIS_URL: redis.url };
    const { store } = await doctor(settings);
    expect(store).toEqual(found("warning", "Redis may lose the latest keys"));
    expect(store?.remedy).toBe("Set appendonly yes.");
    await redis.kill();
    expect((await doctor(settings))["store"]).toEqual(found("failed", "Redis at .* cannot be used"));
  });
});

describe.skipIf(lentOnly("nats"))("NATS", () => {
  const grants = (publish: readonly string[], subscribe = ["tl1.>"]) =>
    `authorization { users: [{ user: g, password: p, permissions: ${JSON.stringify({ publish, subscribe })} }] }`;

  const needed = ["tl1.machine.>", "tl1.rollcall"];
  test.each([
    [["tl1.>"], ["tl1.>"], found("ok", "NATS allows all")],
    [["tl1.machine.>"], ["tl1.>"], found("failed", "tl1.rollcall")],
    [needed, ["tl1.>"], found("warning", /publish to tl1\.placed\.\*, so gateways choose machines without/)],
    [["tl1.>"], ["tl1.reply.>", "tl1.presence.*"], found("warning", /subscribe to tl1\.placed\.\*, so gateways/)],
  ])("a user that may publish to %j and subscribe to %j", async (publish, subscribe, expected) => {
    await using nats = await startNatsServer({ extraConfig: grants(publish, subscribe) });
    const url = nats.url.replace("://", "://g:p@");
    const results = await doctor({ TRUNKLINE_NATS_URL: url });
    expect(results["grants"]).toEqual(expected);
    const { finding = "", outcome } = results["nats"] ?? {};
    const version = /^NATS (\S+) at [\w.]+:\d+ admits this credential/.exec(finding)?.[1] ?? "";
    expect(outcome).toBe(isBelow(version, [2, 12, 7]) ? "warning" : "ok");
  });

  test("NATS that refuses the credential is found", async () => {
    await using nats = await startNatsServer({ extraConfig: grants(["tl1.>"]) });
    const results = await doctor({ TRUNKLINE_NATS_URL: nats.url.replace("://", "://g:wrong@") });
    expect(results["nats"]).toEqual(found("failed", "refuses the credential"));
    expect(results["grants"]?.outcome).toBe("skipped");
  });
});
