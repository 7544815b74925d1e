import { Command } from "commander";
import type { Environment } from "#shared/process/config.ts";

export function gatewayCommand(environment: Environment): Command {
  return new Command("gateway")
    .description("run a gateway: the endpoint that clients talk to")
    .addHelpText(
      "after",
      `
Needs TRUNKLINE_NATS_URL. With TRUNKLINE_REDIS_URL (and TRUNKLINE_KEY_PEPPER) any number of gateways share their keys;
without, this one keeps them in TRUNKLINE_STATE_DIR.

Example:
  export TRUNKLINE_NATS_URL=nats://127.0.0.1:4222 TRUNKLINE_REDIS_URL=redis://127.0.0.1:6379
  export TRUNKLINE_KEY_PEPPER="$(openssl rand -base64 32)"    # one secret for all gateways: keep it
  trunkline gateway`,
    )
    .action(async () => {
      // Imported here, and likewise in the other commands: a command that runs no service then starts in little more
      // than half the time.
      const { runGateway } = await import("../gateway/main.ts");
      await runGateway(environment);
    });
}
