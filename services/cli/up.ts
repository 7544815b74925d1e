import { Command, Option } from "commander";
import { ggufOption } from "./gguf-option.ts";
import type { UpGiven, UpSurroundings } from "./run-up.ts";

/**
 * Makes the command `trunkline up`: gateway and agent in one process. The broker and the key store are embedded unless
 * others are configured.
 */
export function upCommand(surroundings: UpSurroundings): Command {
  return new Command("up")
    .description("run everything in one process: gateway, agent, broker and keys")
    .option("--json", "print one line of JSON when ready: base_url, api_key, runtime")
    .addOption(
      new Option("--hide-key", "tell the file of the API key, and not the key: for logs that others read").conflicts(
        "json",
      ),
    )
    .addOption(ggufOption())
    .addHelpText(
      "after",
      `
Uses the model servers on this machine, or the files that --gguf names, or a demonstration when there are none. Keys
are kept in TRUNKLINE_STATE_DIR.
TRUNKLINE_NATS_URL and TRUNKLINE_REDIS_URL turn the embedded broker and key store into real ones.

Examples:
  trunkline up
  trunkline up --gguf model.gguf
  TRUNKLINE_PORT=9000 trunkline up --json`,
    )
    .action(async (given: UpGiven) => {
      const { runUp } = await import("./run-up.ts");
      await runUp(surroundings, given);
    });
}
