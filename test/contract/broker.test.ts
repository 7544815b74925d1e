import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Broker } from "#shared/broker/broker.ts";
import { MemoryBroker, type MemoryConnection } from "#shared/broker/memory-broker.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { lentOnly, type SomeServer } from "../harness/found-servers.ts";
import { natsUrl, startNatsServer } from "../harness/nats-server.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";
import { until } from "../harness/until.ts";
import { nobodyThereContract } from "./broker-nobody-there.contract.ts";
import { brokerOutageContract } from "./broker-outage.contract.ts";
import { brokerContract } from "./broker.contract.ts";

const log = createLog({ level: "silent", name: "test" });
const toNats = (url: string): Promise<Broker> => connectNats({ url, name: "test", clock, log });

describe("in process", () => {
  const name = "the in-process broker";
  const broker = new MemoryBroker({ clock, log });
  const cut = new Set<MemoryConnection>();
  const connections = new Map<Broker, MemoryConnection>();
  const connect = async (): Promise<Broker> => {
    const connection = broker.connect();
    connections.set(connection, connection);
    return connection;
  };
  brokerContract(name, { connect });
  nobodyThereContract(name, { connect });
  brokerOutageContract(name, {
    connect,
    cut: async (connection) => {
      const own = connections.get(connection);
      own?.cut();
      if (own !== undefined) cut.add(own);
    },
    restore: async () => {
      for (const connection of cut) connection.restore();
      cut.clear();
    },
  });

  // Only here: over NATS it is a matter of luck what was read before a connection broke.
  test("a message on its way to a connection that was cut does not come when it is restored", async () => {
    const [speaker, listener] = [broker.connect(), broker.connect()];
    const heard: string[] = [];
    listener.subscribe("x", ({ data }) => void heard.push(Buffer.from(data).toString()));
    speaker.publish("x", Buffer.from("on its way"));
    listener.cut();
    listener.restore();
    speaker.publish("x", Buffer.from("after"));
    await until(() => heard.includes("after"), { what: "the message that followed" });
    expect(heard).toEqual(["after"]);
  });

  // Only here: what a NATS server does with a slow consumer is the server's own, and not cheap to bring about.
  test("a connection that takes its messages too slowly is cut, comes back, and is there for what follows", async () => {
    const small = new MemoryBroker({ clock, log, pendingBytesMax: 1_000 });
    const [speaker, listener] = [small.connect(), small.connect()];
    const heard: number[] = [];
    const told: boolean[] = [];
    listener.subscribe("x", ({ data }) => void heard.push(data.byteLength));
    listener.onChange((connected) => void told.push(connected));
    for (let count = 0; count < 3; count += 1) speaker.publish("x", new Uint8Array(500));
    await until(() => told.length === 2, { what: "the connection to be back" });
    speaker.publish("x", new Uint8Array(7));
    await until(() => heard.includes(7), { what: "the message that followed" });
    expect({ heard, told }).toEqual({ heard: [7], told: [false, true] });
  });
});

describe("NATS", () => {
  let server: SomeServer;
  beforeAll(async () => void (server = await natsUrl()));
  afterAll(() => server.stop());
  const connect = () => toNats(server.url);
  brokerContract("NATS", { connect });
  nobodyThereContract("NATS", { connect });
});

describe.skipIf(lentOnly("nats"))("NATS of one's own", () => {
  let server: OwnServer;
  beforeAll(async () => void (server = await startNatsServer()));
  afterAll(() => server.stop());
  brokerOutageContract("NATS", {
    connect: () => toNats(server.url),
    cut: () => server.kill(),
    restore: () => server.restart(),
  });

  // Only here: nothing can be frozen inside of one process.
  test("a server that froze counts as lost within seconds, and is used again when it thaws", async () => {
    const connection = await toNats(server.url);
    await server.freeze();
    await until(() => !connection.connected, { what: "the freeze to be noticed", timeoutMs: 8_000 });
    await server.thaw();
    await until(() => connection.connected, { what: "the connection to be back", timeoutMs: 8_000 });
    await connection.close();
  });

  // Only here: an in-process connection has nothing to wait for when it closes.
  test("a connection that was closed leaves no timer behind, which would keep the process from its end", async () => {
    const turnable = new TurnableClock();
    const connection = await connectNats({ url: server.url, name: "test", clock: turnable, log });
    await connection.close();
    expect(turnable.timersWaiting).toBe(0);
  });
});
