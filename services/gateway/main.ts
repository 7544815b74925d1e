import { connectNats } from "#shared/broker/nats-broker.ts";
import { openKeyStore } from "#shared/store/open-key-store.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { createLog } from "#shared/process/log.ts";
import { exitCodes, runUntilStopped, StartFailure } from "#shared/process/lifecycle.ts";
import { startGateway } from "./compose.ts";
import { gatewayConfig } from "./config.ts";
import { natsForMachines } from "./compose-tunnels.ts";

/** Runs a gateway as a process of its own until it is told to stop. */
export async function runGateway(environment: Environment): Promise<void> {
  const config = gatewayConfig(environment);
  const { natsUrl: url } = config;
  if (url === undefined) {
    throw new StartFailure(
      exitCodes.config,
      "trunkline gateway needs TRUNKLINE_NATS_URL, such as nats://127.0.0.1:4222; trunkline up runs everything in one process without it.",
    );
  }
  const log = createLog({ level: config.logLevel, format: config.logFormat, name: "gateway" });
  await runUntilStopped({
    environment,
    drainMs: config.drainMs,
    log,
    async start(lifecycle) {
      const store = await openKeyStore(config, { clock, log });
      lifecycle.onStop("keys", () => store.keys.close());
      const { natsCreds: credentialsFile, natsSecurity: security } = config;
      const broker = await connectNats({ url, credentialsFile, security, name: "trunkline gateway", clock, log });
      lifecycle.onStop("broker", () => broker.close());
      const brokerFor = natsForMachines(config, { clock, log });
      await startGateway({ config, broker, brokerFor, store, lifecycle, clock, log });
      log.info("gateway ready");
    },
  });
}
