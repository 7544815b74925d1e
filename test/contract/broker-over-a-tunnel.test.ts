import { afterAll, beforeAll, describe } from "vitest";
import type { Broker } from "#shared/broker/broker.ts";
import { connectTunnel } from "#shared/site/nats-tunnel.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { TunnelSite } from "../harness/tunnel-site.ts";
import { nobodyThereContract } from "./broker-nobody-there.contract.ts";
import { brokerOutageContract } from "./broker-outage.contract.ts";
import { brokerContract } from "./broker.contract.ts";

// A file of its own: the client library has one kind of transport for the whole process.
describe("a tunnel to the embedded broker", () => {
  const name = "a tunnel";
  const log = createLog({ level: "silent", name: "test" });
  const everything = { publish: [">"], subscribe: [">"] };
  let site: TunnelSite;
  let machines = 0;
  beforeAll(async () => void (site = await TunnelSite.start({ grantsOf: () => everything })));
  afterAll(() => site[Symbol.asyncDispose]());

  const connect = async (): Promise<Broker> =>
    connectTunnel({ ...site.pair(`machine-${(machines += 1)}`), clock, log });
  brokerContract(name, { connect });
  nobodyThereContract(name, { connect });
  brokerOutageContract(name, {
    connect,
    cut: async () => {
      site.isReady = false;
      site.cut();
    },
    restore: async () => void (site.isReady = true),
  });
});
