import { type StartOptions, ggufOption, publicOption, withOptions } from "./start-options.ts";
import { type Command, Option } from "commander";
import { commandIn, type CliContext } from "../terminal/command-line.ts";
import type { UpOptions } from "./run-up.ts";

/**
 * Makes the command `trunkline up`: gateway and agent in one process. The broker and the key store are embedded unless
 * others are configured.
 */
export function upCommand(context: CliContext): Command {
  const hideKey = "tell the file of the API key, and not the key: for logs that others read";
  return commandIn("up", context)
    .option("--json", "print one line of JSON when ready: base_url, api_key, runtime, and public_url with --public")
    .addOption(new Option("--hide-key", hideKey).conflicts("json"))
    .option("--quiet", "show no line for each request")
    .addOption(ggufOption())
    .addOption(publicOption())
    .more(`
Uses the model servers on this machine, or the files that --gguf names, or a demonstration when there are none. Keys
are kept in TRUNKLINE_STATE_DIR.
TRUNKLINE_NATS_URL and TRUNKLINE_REDIS_URL turn the embedded broker and key store into real ones.
Each request is shown on standard error when it ends: as a row on a terminal, with tokens, the time to the first token and
the total time, and as a line of JSON elsewhere (TRUNKLINE_LOG_FORMAT).

With --public GPU machines elsewhere can be paired with this site, and there is no demonstration. The port opens to other
hosts when it has a certificate (TRUNKLINE_TLS_CERT, TRUNKLINE_TLS_KEY), or to the proxies of TRUNKLINE_TRUSTED_PROXIES
alone; otherwise it stays on 127.0.0.1, for a proxy on this host.

Examples:
  trunkline up
  trunkline up --gguf model.gguf
  TRUNKLINE_PORT=9000 trunkline up --json
  trunkline up --public https://models.example.org`)
    .action(async (given: UpOptions) => {
      const { runUp } = await import("./run-up.ts");
      await runUp(context, given);
    });
}

export function gatewayCommand(context: CliContext): Command {
  return commandIn("gateway", context)
    .addOption(publicOption())
    .more(`
Needs TRUNKLINE_NATS_URL. With TRUNKLINE_REDIS_URL (and TRUNKLINE_KEY_PEPPER) any number of gateways share their keys;
without, this one keeps them in TRUNKLINE_STATE_DIR.

Example:
  export TRUNKLINE_NATS_URL=nats://127.0.0.1:4222 TRUNKLINE_REDIS_URL=redis://127.0.0.1:6379
  export TRUNKLINE_KEY_PEPPER="$(openssl rand -base64 32)"    # one secret for all gateways: keep it
  trunkline gateway`)
    .action(async (given: StartOptions) => {
      // Imported here, and likewise in the other commands: a command that runs no service then starts in little more
      // than half the time.
      const { runGateway } = await import("../../gateway/main.ts");
      await runGateway(withOptions(context.environment, given));
    });
}
