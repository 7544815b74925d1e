import { Command } from "commander";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { openKeyStore } from "#shared/keys/open-key-store.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { createLog } from "#shared/process/log.ts";
import { startGateway } from "../gateway/compose.ts";
import { gatewayConfig } from "../gateway/config.ts";
import { natsUrlFor } from "./nats-url-for.ts";
import { runUntilStopped } from "./run-until-stopped.ts";

/** `trunkline gateway`: HTTP in, jobs out, as a process of its own. */
export function gatewayCommand(environment: Environment): Command {
  return new Command("gateway")
    .description("run a gateway: the HTTPS endpoint that clients talk to")
    .addHelpText(
      "after",
      `
Needs TRUNKLINE_NATS_URL. With TRUNKLINE_REDIS_URL (and TRUNKLINE_KEY_PEPPER) any number of gateways share their keys;
without, this one keeps them in TRUNKLINE_STATE_DIR.

Example:
  TRUNKLINE_NATS_URL=nats://127.0.0.1:4222 TRUNKLINE_REDIS_URL=redis://127.0.0.1:6379 \\
  TRUNKLINE_KEY_PEPPER="$(cat pepper)" trunkline gateway`,
    )
    .action(async () => {
      const config = gatewayConfig(environment);
      const log = createLog({ level: config.logLevel, name: "gateway" });
      const natsUrl = natsUrlFor("gateway", config.natsUrl);
      await runUntilStopped({
        drainMs: config.drainMs,
        log,
        async start(lifecycle) {
          const store = await openKeyStore(config.keyStore, { clock, log });
          lifecycle.onStop("keys", () => store.keys.close());
          const broker = await connectNats({
            url: natsUrl,
            credentialsFile: config.natsCredentialsFile,
            name: "trunkline gateway",
            clock,
            log,
          });
          lifecycle.onStop("broker", () => broker.close());
          const { fleetKnown } = await startGateway({ config, broker, store, lifecycle, clock, log });
          await fleetKnown;
          log.info("gateway ready");
        },
      });
    });
}
