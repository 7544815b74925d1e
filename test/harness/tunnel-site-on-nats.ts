import { connectNats } from "#shared/broker/nats-broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { createLog } from "#shared/process/log.ts";
import { TunnelSite } from "./tunnel-site.ts";

/**
 * A process of its own, because the client library of NATS has one kind of transport for a whole process: the gateway's
 * end of tunnels to the NATS server of its first argument. It pairs machines, and tells what their agents need.
 */
const [, , url = "", machines = "0"] = process.argv;
const log = createLog({ level: "silent", name: "test" });
const site = await TunnelSite.start({
  grantsOf: () => ({ publish: [">"], subscribe: [">"] }),
  brokerFor: (machine) => connectNats({ url, name: machine, clock, log }),
});
const paired = Array.from({ length: Number(machines) }, (_, index) => {
  const { publicKey, seed } = site.pair(`machine-${index}`);
  return { publicKey, seed };
});
process.stdout.write(`${JSON.stringify({ origin: site.origin, site: site.site, paired })}\n`);
