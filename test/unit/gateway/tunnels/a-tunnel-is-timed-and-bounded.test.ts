import { setImmediate } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { MemoryBroker } from "#shared/broker/memory-broker.ts";
import type { MachineRecord } from "#shared/records/machine-record.ts";
import { createLog } from "#shared/process/log.ts";
import { newMachineKeyPair, signChallenge } from "#shared/protocol/pairing.ts";
import { machineGrants } from "#shared/protocol/subjects.ts";
import { perMinute, RateBuckets } from "#shared/process/rate-buckets.ts";
import { connectsPerMinuteMax } from "#shared/protocol/pairing.ts";
import { framesPerSecondMax } from "../../../../services/gateway/tunnels/frame-rate.ts";
import { OpenTunnels } from "../../../../services/gateway/tunnels/open-tunnels.ts";
import {
  bytesAtOnceMax,
  commandsAtOnceMax,
  commandWaitMs,
  connectWaitMs,
  pendingBytesMax,
  silenceMs,
  Tunnel,
  type TunnelSocket,
} from "../../../../services/gateway/tunnels/tunnel.ts";
import { until } from "../../../harness/until.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

class FakeSocket implements TunnelSocket {
  bufferedAmount = 0;
  readonly sent: string[] = [];
  state: "open" | "ended" | "cut" = "open";
  isPaused = false;

  send(bytes: Uint8Array): void {
    this.sent.push(Buffer.from(bytes).toString());
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
  }

  close(): void {
    this.state = "ended";
  }

  terminate(): void {
    this.state = "cut";
  }
}

const site = "A".repeat(22);

function openSite() {
  const logged: string[] = [];
  const flooded: string[] = [];
  const log = createLog({ level: "info", name: "test", write: (line) => void logged.push(line) });
  const clock = new TurnableClock();
  const broker = new MemoryBroker({ clock, log });
  const byKey = new Map<string, MachineRecord>();
  const byName = new Map<string, MachineRecord>();
  const records = { get: (name: string) => byName.get(name), onChange: () => undefined };
  const open = new OpenTunnels({
    gateway: "G",
    broker: broker.connect(),
    records,
    onUsedTwice: () => undefined,
    clock,
    log,
  });
  const rate = new RateBuckets(clock, perMinute(connectsPerMinuteMax));
  const connection = broker.connect();
  const find = async (publicKey: string): Promise<MachineRecord | undefined> => byKey.get(publicKey);
  const tunnel = (): { readonly socket: FakeSocket; readonly tunnel: Tunnel } => {
    const socket = new FakeSocket();
    const parts = { site, gateway: "G", find, brokerFor: async () => connection, grantsOf: machineGrants };
    const meter = { tunnelFlooded: (machine: string) => void flooded.push(machine) };
    const limits = { version: "0", payloadBytesMax: 1_000, rate, meter, clock, log };
    return {
      socket,
      tunnel: new Tunnel({ socket, address: "192.0.2.1", release: () => undefined }, { ...parts, ...limits }, open),
    };
  };
  const proven = async (name = "attic") => {
    const keyPair = newMachineKeyPair();
    const record = { name, publicKey: keyPair.publicKey, version: 1, createdAt: 0, changedAt: 0 };
    byKey.set(record.publicKey, record);
    byName.set(name, record);
    const { socket, tunnel: opened } = tunnel();
    await setImmediate();
    const challenge: unknown = JSON.parse((socket.sent[0] ?? "").slice(5)).nonce;
    const sig = signChallenge(keyPair.seed, { purpose: "connect", site, challenge: String(challenge) });
    const say = (text: string): void => {
      opened.bytesArrived(Buffer.alloc(0));
      opened.receive(Buffer.from(text));
    };
    say(`CONNECT ${JSON.stringify({ nkey: keyPair.publicKey, sig, boot: "B".repeat(22) })}\r\n`);
    await setImmediate();
    expect(opened.isOpen).toBe(true);
    socket.sent.length = 0;
    return { socket, tunnel: opened, say, ...record };
  };
  return { clock, broker, connection, open, rate, tunnel, proven, logged, flooded };
}

test("a tunnel whose machine is not proven in time is closed", async () => {
  const { clock, tunnel } = openSite();
  const { socket } = tunnel();
  clock.advance(connectWaitMs - 1);
  expect(socket.state).toBe("open");
  clock.advance(1);
  expect(socket.state).toBe("ended");
  expect(socket.sent.at(-1)).toContain(`-ERR 'Authentication Timeout (${connectWaitMs} ms)'`);
});

test("a tunnel answers a ping when the broker has received all that came before, and not earlier", async () => {
  const { connection, proven } = openSite();
  const { socket, say } = await proven();
  const flushed = Promise.withResolvers<void>();
  connection.flush = () => flushed.promise;
  say("PUB tl1.presence.attic 1\r\nx\r\nPING\r\n");
  await setImmediate();
  expect(socket.sent).toEqual([]);
  flushed.resolve();
  await setImmediate();
  expect(socket.sent).toEqual(["PONG\r\n"]);
});

test("a tunnel sends all messages of one turn of the event loop in one piece", async () => {
  const { broker, proven } = openSite();
  const { socket, say } = await proven();
  say("SUB tl1.machine.attic.> 1\r\nSUB tl1.rollcall 2\r\n");
  const gateway = broker.connect();
  for (const subject of ["tl1.machine.attic.1.job", "tl1.rollcall", "tl1.machine.attic.1.part"]) {
    gateway.publish(subject, Buffer.from("x"));
  }
  await setImmediate();
  await setImmediate();
  expect(socket.sent).toHaveLength(1);
  expect(socket.sent[0]?.match(/MSG/g)).toHaveLength(3);
});

test("a tunnel that is silent is pinged, and closed when it stays silent", async () => {
  const { clock, proven, open } = openSite();
  const { socket } = await proven();
  clock.advance(2_000);
  await setImmediate();
  expect(socket.sent).toEqual(["PING\r\n"]);
  clock.advance(silenceMs - 3_000);
  expect(socket.state).toBe("open");
  clock.advance(1_000);
  expect([socket.state, open.machines]).toEqual(["cut", 0]);
});

test("a tunnel that sends a part of a message is not silent", async () => {
  const { clock, proven } = openSite();
  const { socket, tunnel } = await proven();
  for (let passedMs = 0; passedMs < 3 * silenceMs; passedMs += 1_000) {
    clock.advance(1_000);
    tunnel.bytesArrived(Buffer.alloc(1));
  }
  expect([socket.state, socket.sent]).toEqual(["open", []]);
});

test("a tunnel is not closed for a pause of the gateway itself", async () => {
  const { clock, proven } = openSite();
  const { socket } = await proven();
  clock.advance(1_000);
  clock.standStill(2 * silenceMs);
  clock.advance(1_000);
  expect(socket.state).toBe("open");
});

test("a tunnel is closed when too many bytes wait for its machine", async () => {
  const { proven, open, logged } = openSite();
  const { socket, say } = await proven();
  socket.bufferedAmount = pendingBytesMax + 1;
  say("PING\r\n");
  await setImmediate();
  expect([socket.state, open.machines]).toEqual(["cut", 0]);
  expect(logged.join("")).toContain("pendingBytesMax");
});

test("a tunnel is closed when a message is not whole in time, however many bytes and pings come meanwhile", async () => {
  const { clock, proven, open, logged } = openSite();
  const { socket, say, publicKey } = await proven();
  say("PUB tl1.presence.attic 1000\r\n");
  for (let passedMs = 1_000; passedMs < commandWaitMs; passedMs += 1_000) {
    clock.advance(1_000);
    say("x");
  }
  expect(socket.state).toBe("open");
  clock.advance(1_000);
  expect([socket.state, open.machines]).toEqual(["ended", 0]);
  expect(logged.join("")).toContain(`${commandWaitMs} ms, commandWaitMs`);
  expect(open.whyClosed(publicKey)).toContain("its connection was closed: No Whole Command");
});

test("a tunnel carries as many frames at once, and then each second, as its limit; one more closes it for a while", async () => {
  const { clock, rate, proven, open, flooded } = openSite();
  const { socket, tunnel, publicKey } = await proven();
  const frames = (count: number): void => tunnel.bytesArrived(Buffer.from("\x82\x80mask".repeat(count), "latin1"));
  clock.advance(1_000);
  frames(framesPerSecondMax);
  clock.advance(500);
  frames(framesPerSecondMax / 2);
  expect([socket.state, flooded]).toEqual(["open", []]);
  frames(1);
  expect([socket.state, socket.isPaused, open.machines, flooded]).toEqual(["ended", true, 0, ["attic"]]);
  expect(socket.sent.join("")).toContain(`-ERR 'Maximum Frames And Commands Exceeded (${framesPerSecondMax} a second`);
  expect(rate.take(publicKey)).toBeGreaterThan(0);
  expect(open.whyClosed(publicKey)).toContain("framesPerSecondMax");
});

test("a tunnel that packs more commands into few frames than frames are allowed is closed too", async () => {
  const { proven, open, flooded } = openSite();
  const { socket, say, publicKey } = await proven();
  for (let sent = 0; sent <= framesPerSecondMax; sent += 1_000) say("PONG\r\n".repeat(1_000));
  await until(() => socket.state === "ended", { what: "the tunnel to be closed" });
  expect([open.machines, flooded]).toEqual([0, ["attic"]]);
  expect(open.whyClosed(publicKey)).toContain("framesPerSecondMax");
});

test("a tunnel whose agent closes it has no reason to tell", async () => {
  const { proven, open } = openSite();
  const { tunnel, publicKey } = await proven();
  tunnel.socketClosed();
  expect(open.whyClosed(publicKey)).toBeUndefined();
});

test.each([
  ["commands", "PUB tl1.presence.attic 0\r\n\r\n".repeat(3 * commandsAtOnceMax)],
  ["bytes", `PUB tl1.presence.attic 1000\r\n${"x".repeat(1_000)}\r\n`.repeat((2 * bytesAtOnceMax) / 1_000)],
])("a tunnel carries out so many %s at once, and reads no more until the broker has them", async (_, text) => {
  const { connection, proven } = openSite();
  const { socket, say } = await proven();
  const [published, flushed] = [vi.spyOn(connection, "publish"), Promise.withResolvers<void>()];
  connection.flush = () => flushed.promise;
  for (let at = 0; at < text.length; at += 10_000) say(text.slice(at, at + 10_000));
  expect(socket.isPaused).toBe(true);
  const atOnce = published.mock.calls.length;
  expect(atOnce).toBeLessThanOrEqual(commandsAtOnceMax);
  await setImmediate();
  expect(published).toHaveBeenCalledTimes(atOnce);
  flushed.resolve();
  await until(() => !socket.isPaused, { what: "the tunnel to read on" });
  expect(published).toHaveBeenCalledTimes(text.split("PUB").length - 1);
  expect(socket.state).toBe("open");
});

test("a tunnel leaves no timer behind", async () => {
  const { clock, tunnel, proven, open } = openSite();
  await proven();
  tunnel().tunnel.socketClosed();
  open.close();
  expect(clock.timersWaiting).toBe(0);
});

test("a tunnel fails alone when the gateway makes a mistake", async () => {
  const { connection, proven, open } = openSite();
  const { socket, say } = await proven();
  connection.publish = () => {
    throw new Error("a mistake");
  };
  say("PUB tl1.presence.attic 0\r\n\r\n");
  expect([socket.state, open.machines]).toEqual(["ended", 0]);
  expect(socket.sent.at(-1)).toContain("Authorization Violation: unavailable");
});
