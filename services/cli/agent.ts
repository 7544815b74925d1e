import { Command } from "commander";
import { connectNats } from "#shared/broker/nats-broker.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { createLog } from "#shared/process/log.ts";
import { startAgent } from "../agent/compose.ts";
import { agentConfig } from "../agent/config.ts";
import { natsUrlFor } from "./nats-url-for.ts";
import { runUntilStopped } from "./run-until-stopped.ts";

/** `trunkline agent`: jobs in, runtime out, as a process of its own on a GPU machine. */
export function agentCommand(environment: Environment): Command {
  return new Command("agent")
    .description("run an agent: on a GPU machine, beside its model server")
    .addHelpText(
      "after",
      `
Needs TRUNKLINE_NATS_URL, and dials out to it: the machine needs no open port. Uses the Ollama at
TRUNKLINE_RUNTIME_URL (http://127.0.0.1:11434), and waits for it when it is not there yet.

Example:
  TRUNKLINE_NATS_URL=nats://broker.example:4222 TRUNKLINE_MACHINE=attic trunkline agent`,
    )
    .action(async () => {
      const config = agentConfig(environment);
      const log = createLog({ level: config.logLevel, name: "agent" });
      const natsUrl = natsUrlFor("agent", config.natsUrl);
      await runUntilStopped({
        drainMs: config.drainMs,
        log,
        async start(lifecycle) {
          const broker = await connectNats({
            url: natsUrl,
            credentialsFile: config.natsCredentialsFile,
            name: `trunkline agent ${config.machine}`,
            clock,
            log,
          });
          lifecycle.onStop("broker", () => broker.close());
          await startAgent({ config, broker, lifecycle, clock, log, fallbackToScripted: false });
        },
      });
    });
}
