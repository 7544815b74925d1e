import { insistOnNats } from "#shared/broker/insist-on-nats.ts";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { createLog } from "#shared/process/log.ts";
import { runUntilStopped } from "#shared/process/lifecycle.ts";
import { startAgent } from "./compose.ts";
import { agentConfig } from "./config.ts";

/** Runs an agent as a process of its own until it is stopped. */
export async function runAgent(environment: Environment): Promise<void> {
  const config = agentConfig(environment);
  const url = insistOnNats("agent", config.natsUrl);
  const log = createLog({ level: config.logLevel, name: "agent" });
  await runUntilStopped({
    environment,
    drainMs: config.drainMs,
    log,
    async start(lifecycle) {
      const { natsCredentialsFile: credentialsFile, natsSecurity: security, machine } = config;
      const name = `trunkline agent ${machine}`;
      const broker = await connectNats({ url, credentialsFile, security, name, clock, log });
      lifecycle.onStop("broker", () => broker.close());
      await startAgent({ config, broker, lifecycle, clock, log, fallbackToScripted: false });
    },
  });
}
