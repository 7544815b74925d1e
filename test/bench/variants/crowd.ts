import { join } from "node:path";
import { startNatsServer } from "../../harness/nats-server.ts";
import { OwnedChild } from "../../harness/owned-child.ts";
import { startRedisServer } from "../../harness/redis-server.ts";
import { startGateway } from "../../harness/start-trunkline.ts";
import { issueKeys, neverReached } from "./issue-keys.ts";
import { ownServers, ownServersMissing } from "./own-servers.ts";
import { pathProcess } from "./path-process.ts";
import { runningParts } from "./running-parts.ts";
import { bareEnvironment } from "./single-process.ts";
import { untilMachines } from "./until-machines.ts";
import type { RunningVariant, Variant } from "./variant.ts";

const simulation = join(import.meta.dirname, "simulated-machines.ts");

/** A gateway of a site with so many machines, which are simulated and do not count: for what a gateway has to bear of them. */
export function crowd(machines: number): Variant {
  return {
    name: `crowd-${machines}`,
    title: `Trunkline's gateway with ${machines} simulated machine${machines === 1 ? "" : "s"} that answer at once`,
    version: () => Promise.resolve("as trunkline"),
    missing: ownServersMissing,
    start: () => runningParts((parts) => build(machines, parts)),
  };
}

async function build(machines: number, parts: AsyncDisposableStack): Promise<Omit<RunningVariant, symbol>> {
  const found = await ownServers();
  const nats = parts.use(await startNatsServer({ found: found.nats }));
  const redis = parts.use(await startRedisServer({ found: found.redis }));
  const [natsUrl, redisUrl] = [nats.url, redis.url];
  const [key = ""] = await issueKeys(redisUrl, { limits: neverReached });
  const headers = { authorization: `Bearer ${key}` };
  parts.use(
    await OwnedChild.start({
      binary: process.execPath,
      args: [simulation, natsUrl, String(machines)],
      environment: bareEnvironment(),
    }),
  );
  const gateway = parts.use(await startGateway({ natsUrl, redisUrl, env: {} }));
  await untilMachines(gateway.operationsUrl, machines);
  return {
    ports: [Number(new URL(gateway.baseUrl).port)],
    headers,
    processes: [pathProcess("gateway", gateway), pathProcess("nats", nats), pathProcess("redis", redis)],
  };
}
