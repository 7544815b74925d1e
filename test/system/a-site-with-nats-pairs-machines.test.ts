import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { changeMachine } from "#shared/records/change-machine.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { type MachineKeyPair, newMachineKeyPair, parseJoinLine } from "#shared/protocol/pairing.ts";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { OperatorSite } from "../harness/operator-site.ts";
import { pairAt } from "../harness/pair-over-http.ts";
import { answerToUpgrade, RawTunnel } from "../harness/raw-tunnel.ts";
import { startGateway } from "../harness/start-trunkline.ts";
import { until } from "../harness/until.ts";

const actor = { by: "the operator" };

describe.skipIf(lentOnly("nats", "redis"))("a site with NATS in operator mode, Redis and two gateways", () => {
  let site: OperatorSite;
  beforeAll(async () => void (site = await OperatorSite.start()));
  afterAll(() => site[Symbol.asyncDispose]());

  /** A machine without an agent: its key, paired under a name that no other test has. */
  async function pairKey(): Promise<MachineKeyPair & { readonly name: string }> {
    const keyPair = newMachineKeyPair();
    const name = `machine-${randomBytes(4).toString("hex")}`;
    const line = parseJoinLine(await site.joinLine(name, site.originOf(0)));
    if (line === undefined) throw new Error("the line is none");
    const paired = await pairAt(line.origin, line, { publicKey: keyPair.publicKey });
    expect(paired.status).toBe(200);
    return { ...keyPair, name };
  }

  async function openAt(place: number, keyPair: MachineKeyPair, boot = newToken()): Promise<RawTunnel> {
    const tunnel = await (await RawTunnel.open(site.originOf(place))).prove(keyPair, boot);
    onTestFinished(() => tunnel[Symbol.asyncDispose]());
    return tunnel;
  }

  const recordOf = (name: string): Promise<MachineRecord | undefined> => site.operator.store.machines.find(name);

  test("each gateway serves the machines that joined at the other one", async () => {
    await using _attic = await site.startMachine("attic", { models: ["scripted"] });
    await using _cellar = await site.startMachine("cellar", { origin: site.originOf(1), models: ["scripted:plain"] });
    await using _desk = await site.startMachine("desk", { origin: site.originOf(1), models: ["scripted:mlx"] });
    await site.untilListed("scripted", "scripted:plain", "scripted:mlx");
    for (const endpoint of site.endpoints) {
      for (const model of ["scripted", "scripted:plain", "scripted:mlx"]) {
        expect([model, await endpoint.answer({ model, says: "Hello" })]).toEqual([model, expect.stringMatching(/./)]);
      }
    }
  });

  test.each([
    ["take turns", ["x", "y", "x"]],
    ["take over again and again within a minute under new names", ["x", "y", "z", "w", "v", "u"]],
  ])("two processes that %s at different gateways are told as credential_used_twice", async (_, uses) => {
    const { name, ...keyPair } = await pairKey();
    const boots = new Map(uses.map((use) => [use, newToken()]));
    let newest: RawTunnel | undefined;
    for (const [index, use] of uses.entries()) {
      const older = newest;
      newest = await openAt(index % 2, keyPair, boots.get(use));
      await older?.untilClosed();
    }
    const cordon = await until(async () => (await recordOf(name))?.cordon, { what: "the machine to be cordoned" });
    expect(cordon.reason).toMatch(/^credential_used_twice: from 127\.0\.0\.1 and/);
    expect(newest?.closed).toBe(false);
  });

  test("a revoked machine loses its tunnel within a second, and each gateway refuses its key", async () => {
    const { name, ...keyPair } = await pairKey();
    const tunnel = await openAt(0, keyPair);
    const revokedAtMs = performance.now();
    await changeMachine(name, { action: "machine_revoked" }, { ...site.operator.store, clock, actor });
    await tunnel.untilClosed();
    expect(performance.now() - revokedAtMs).toBeLessThan(1_000);
    for (const place of [0, 1]) {
      const again = await RawTunnel.open(site.originOf(place));
      onTestFinished(() => again[Symbol.asyncDispose]());
      await again.prove(keyPair).catch(() => undefined);
      await again.untilClosed();
      expect(again.error).toBe("Authorization Violation: machine_revoked");
    }
  });

  test("a gateway without a signing key says so to machines, before a join line is used", async () => {
    const { nats, redis } = site;
    const env = { TRUNKLINE_NATS_CA: nats.certificates.caFile, TRUNKLINE_NATS_CREDS: nats.file("gateway.creds") };
    const natsUrl = nats.url.replace("nats:", "tls:");
    await using gateway = await startGateway({ natsUrl, redisUrl: redis.url, env });
    const { origin } = new URL(gateway.baseUrl);
    for (const path of ["/agent/v1", "/agent/v1/challenge"]) {
      const told = await fetch(`${origin}${path}`);
      expect([told.status, told.headers.get("x-should-retry")]).toEqual([503, "false"]);
      const { code, message } = await errorOf(told);
      expect([code, message]).toEqual(["machines_unavailable", expect.stringContaining("TRUNKLINE_NATS_SIGNING_KEY")]);
    }
    expect((await answerToUpgrade(`${origin}/agent/v1`)).status).toBe(503);
  });
});
