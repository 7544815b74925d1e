import { Agent } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { z } from "zod";
import type { Broker } from "#shared/broker/broker.ts";
import { connectTunnel } from "#shared/site/nats-tunnel.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startNatsServer } from "../harness/nats-server.ts";
import type { OwnServer } from "../harness/own-server.ts";
import { OwnedChild } from "../harness/owned-child.ts";
import { until } from "../harness/until.ts";
import { nobodyThereContract } from "./broker-nobody-there.contract.ts";
import { brokerOutageContract } from "./broker-outage.contract.ts";
import { brokerContract } from "./broker.contract.ts";

const script = join(import.meta.dirname, "../harness/tunnel-site-on-nats.ts");
/** More than the connections of all contracts together: each is a machine of its own. */
const machinesMax = 200;
const toldBySite = z.object({
  origin: z.string(),
  site: z.string(),
  paired: z.array(z.object({ publicKey: z.string(), seed: z.string() })),
});

describe.skipIf(lentOnly("nats"))("a tunnel to NATS", () => {
  const name = "a tunnel to NATS";
  const log = createLog({ level: "silent", name: "test" });
  let nats: OwnServer;
  let gateway: OwnedChild;
  let told: z.infer<typeof toldBySite>;
  let machines = 0;
  beforeAll(async () => {
    nats = await startNatsServer();
    const args = [script, nats.url, String(machinesMax)];
    gateway = await OwnedChild.start({ binary: process.execPath, args, environment: process.env });
    const line = await until(async () => /^.*\n/.exec(await gateway.stdout())?.[0], {
      what: "the site to listen",
      timeoutMs: 10_000,
    });
    told = toldBySite.parse(JSON.parse(line));
  });
  afterAll(async () => {
    await gateway?.[Symbol.asyncDispose]();
    await nats?.stop();
  });

  const connect = async (): Promise<Broker> => {
    const { origin, site, paired } = told;
    const keyPair = paired[machines++];
    if (keyPair === undefined) throw new Error(`the contracts need more than ${machinesMax} machines`);
    return connectTunnel({ origin, site, ...keyPair, isPinned: false, agent: new Agent(), clock, log });
  };
  brokerContract(name, { connect });
  nobodyThereContract(name, { connect });
  brokerOutageContract(name, { connect, cut: () => nats.kill(), restore: () => nats.restart() });
});
