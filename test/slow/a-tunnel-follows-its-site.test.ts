import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { connectTunnel, type Tunnel } from "#shared/site/nats-tunnel.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { silenceMs } from "../../services/gateway/tunnels/tunnel.ts";
import { TcpProxy } from "../harness/tcp-proxy.ts";
import { RawTunnel } from "../harness/raw-tunnel.ts";
import { TunnelSite } from "../harness/tunnel-site.ts";
import { until } from "../harness/until.ts";

const log = createLog({ level: "silent", name: "test" });
let site: TunnelSite;
let paired: ReturnType<TunnelSite["pair"]>;
beforeEach(async () => {
  site = await TunnelSite.start();
  paired = site.pair("attic");
});
afterEach(() => site[Symbol.asyncDispose]());

async function connect(): Promise<Tunnel> {
  const tunnel = await connectTunnel({ ...paired, clock, log });
  onTestFinished(() => tunnel.close());
  return tunnel;
}

/** Waits until a message of a gateway reaches the machine's subject. */
async function isServed(tunnel: Tunnel, subject: string): Promise<void> {
  const heard: string[] = [];
  const listening = tunnel.subscribe(subject, (message) => void heard.push(message.subject));
  await tunnel.flush();
  site.broker.connect().publish(subject, new Uint8Array());
  await until(() => heard.length > 0, { what: "a message on the tunnel" });
  listening.end();
}

const isUp = (tunnel: Tunnel): Promise<boolean> => until(() => tunnel.connected, { what: "the tunnel to be up" });
const isDown = (tunnel: Tunnel): Promise<boolean> => until(() => !tunnel.connected, { what: "the tunnel to be down" });

test("a tunnel of a revoked machine is closed at once, and its agent learns that it is for good", async () => {
  const tunnel = await connect();
  const revokedAtMs = performance.now();
  await site.revoke("attic");
  const failure = await tunnel.refused;
  expect(performance.now() - revokedAtMs).toBeLessThan(1_000);
  expect(failure.message).toContain("has revoked this machine");
  expect(failure.exitCode).toBe(exitCodes.config);
  await isDown(tunnel);
  expect(tunnel.trouble).toContain("refuses this machine's credential");
});

test("a tunnel of a machine that connects too often comes back when it may, and not a moment earlier", async () => {
  const logged: string[] = [];
  const warnings = createLog({ level: "warn", name: "test", write: (line) => void logged.push(line) });
  const tunnel = await connectTunnel({ ...paired, clock, log: warnings });
  onTestFinished(() => tunnel.close());
  while (site.rate.take(paired.publicKey) === 0);
  site.cut();
  await isDown(tunnel);
  await until(() => logged.some((line) => line.includes("connectsPerMinuteMax")), { what: "the refusal" });
  expect(tunnel.trouble).not.toContain("refuses");
  await until(() => tunnel.connected, { what: "the tunnel to be up", timeoutMs: 10_000 });
  expect(logged.filter((line) => line.includes("connectsPerMinuteMax"))).toHaveLength(1);
  await isServed(tunnel, "tl1.machine.attic.1.job");
});

test("a tunnel of a removed machine is closed at once", async () => {
  const tunnel = await connect();
  site.remove("attic");
  expect((await tunnel.refused).message).toContain("does not know this machine");
});

test("a tunnel of a renamed machine goes on for a while, and comes back under the new name, with the new name's subjects only", async () => {
  const tunnel = await connect();
  const names: string[] = [];
  tunnel.onRenamed((name) => void names.push(name));
  await isServed(tunnel, "tl1.machine.attic.1.job");
  await site.rename("attic", "loft");
  await until(() => names.length > 0, { what: "the new name" });
  expect([names, tunnel.machine]).toEqual([["loft"], "attic"]);
  await isServed(tunnel, "tl1.machine.attic.1.job");
  await until(() => tunnel.machine === "loft", { what: "the end of the time under the old name" });
  await isUp(tunnel);
  await isServed(tunnel, "tl1.machine.loft.1.job");
  tunnel.subscribe("tl1.machine.attic.1.job", () => undefined);
  await expect(tunnel.flush()).rejects.toThrow("does not let this credential subscribe to tl1.machine.attic.>");
});

test("a tunnel that another change of the records does not concern stays open", async () => {
  const tunnel = await connect();
  const changes: boolean[] = [];
  tunnel.onChange((connected) => void changes.push(connected));
  site.pair("cellar");
  await isServed(tunnel, "tl1.machine.attic.1.job");
  expect(changes).toEqual([]);
});

test("a tunnel moves when its gateway asks it to: a stopping gateway asks one after the other", async () => {
  const tunnel = await connect();
  const changes: boolean[] = [];
  tunnel.onChange((connected) => void changes.push(connected));
  const first = tunnel.connectionId;
  await site.open.move(0, AbortSignal.timeout(1_000));
  await until(() => changes.length === 2, { what: "the tunnel to be back" });
  expect(changes).toEqual([false, true]);
  expect(tunnel.connectionId).not.toBe(first);
  await isServed(tunnel, "tl1.machine.attic.1.job");
});

test("a tunnel comes back after an outage, however long its site is away", async () => {
  const tunnel = await connect();
  site.isReady = false;
  site.cut();
  await isDown(tunnel);
  expect(tunnel.trouble).toBe(`the site ${site.origin} cannot be reached`);
  site.isReady = true;
  await isUp(tunnel);
  await isServed(tunnel, "tl1.machine.attic.1.job");
});

test("a tunnel is replaced by a newer one of its own process without a word, and the older one ends", async () => {
  const boot = newToken();
  await using older = await (await RawTunnel.open(site.origin)).prove(paired, boot);
  await using newer = await (await RawTunnel.open(site.origin)).prove(paired, boot);
  await older.untilClosed();
  expect(older.error).toBe("Authorization Violation: replaced");
  expect([newer.closed, site.open.machines, site.usedTwice]).toEqual([false, 1, []]);
});

describe("a tunnel on a bad line", () => {
  let proxy: TcpProxy;
  let tunnel: Tunnel;
  const hold = (): void => {
    proxy.hold("there");
    proxy.hold("back");
  };
  beforeEach(async () => {
    proxy = await TcpProxy.before(site.origin);
    tunnel = await connectTunnel({ ...paired, origin: `http://127.0.0.1:${proxy.port}`, clock, log });
    // The first ping of a connection is given more time.
    await tunnel.flush();
  });
  afterEach(async () => {
    await tunnel.close();
    await proxy[Symbol.asyncDispose]();
  });

  test("a tunnel on a bad line rides out two seconds without a byte", async () => {
    const changes: boolean[] = [];
    tunnel.onChange((connected) => void changes.push(connected));
    hold();
    const heldAtMs = clock.now();
    await until(() => clock.now() - heldAtMs > 2_000, { what: "two seconds to pass" });
    proxy.release();
    await isServed(tunnel, "tl1.machine.attic.1.job");
    expect(changes).toEqual([]);
  });

  test("a tunnel on a bad line is given up within seconds when the line is dead, also with bytes that nobody took", async () => {
    hold();
    for (let count = 0; count < 30; count += 1) {
      tunnel.publish("tl1.presence.attic", new Uint8Array(tunnel.payloadBytesMax));
    }
    // The gateway gives it up after `silenceMs`, and the agent earlier.
    await until(() => !tunnel.connected, { what: "the line to be given up", timeoutMs: silenceMs - 500 });
    expect(site.open.machines).toBe(1);
    proxy.release();
    await isUp(tunnel);
    await isServed(tunnel, "tl1.machine.attic.1.job");
  });
});

describe("a machine's key that two processes use", () => {
  const [one, other] = [newToken(), newToken()];
  const address = "127.0.0.1";
  const twice = ["attic", [address, address]];
  const connects = async (at: TunnelSite, boot: string): Promise<RawTunnel> => {
    const tunnel = await (await RawTunnel.open(at.origin)).prove(paired, boot);
    onTestFinished(() => tunnel.socket.terminate());
    return tunnel;
  };

  test("is told as soon as they take turns, with both addresses, and again only with new evidence", async () => {
    await connects(site, one);
    await connects(site, other);
    expect(site.usedTwice).toEqual([]);
    await connects(site, one);
    expect(site.usedTwice).toEqual([twice]);
    await connects(site, one);
    await connects(site, other);
    expect(site.usedTwice).toEqual([twice]);
    await connects(site, one);
    expect(site.usedTwice).toEqual([twice, twice]);
  });

  test("is told by the gateways together, and the newest tunnel wins at whatever gateway it is", async () => {
    await using second = await TunnelSite.start({ beside: site });
    const first = await connects(site, one);
    const newer = await connects(second, other);
    await first.untilClosed();
    expect(first.error).toBe("Authorization Violation: replaced");
    expect([site.open.machines, second.open.machines]).toEqual([0, 1]);
    await connects(site, one);
    await newer.untilClosed();
    expect(site.usedTwice).toEqual([twice]);
  });

  test("is told when a thief names a new process each time", async () => {
    for (let count = 0; count < 3; count += 1) await connects(site, newToken());
    expect(site.usedTwice).toEqual([]);
    await connects(site, newToken());
    expect(site.usedTwice).toEqual([twice]);
  });

  test("is told no more while its machine is cordoned for that, and still while it is cordoned for another reason", async () => {
    const takeTurns = async (): Promise<void> => {
      for (const boot of [one, other, one]) await connects(site, boot);
    };
    const cordon = async (reason: string): Promise<void> => {
      await site.cordon("attic", reason);
      await until(() => site.records.get("attic")?.cordon?.reason === reason, { what: "the cordon" });
    };
    await cordon("credential_used_twice: from 192.0.2.1 and from 192.0.2.2");
    await takeTurns();
    expect(site.usedTwice).toEqual([]);
    await cordon("its fan is replaced");
    await takeTurns();
    expect(site.usedTwice).toEqual([twice]);
  });

  test("is one's own again after an operator has lifted the cordon", async () => {
    await connects(site, one);
    await connects(site, other);
    await site.cordon("attic", "credential_used_twice");
    await site.cordon("attic", undefined);
    await until(() => site.records.get("attic")?.version === 3, { what: "the cordon to be lifted" });
    await connects(site, one);
    expect(site.usedTwice).toEqual([]);
  });
});
