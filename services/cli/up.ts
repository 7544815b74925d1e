import { Command } from "commander";
import { ggufOption } from "./gguf-option.ts";
import type { UpGiven, UpSurroundings } from "./run-up.ts";

/** `trunkline up`: gateway and agent in one process, with the embedded broker and key store unless others are named. */
export function upCommand(surroundings: UpSurroundings): Command {
  return new Command("up")
    .description("run everything in one process: gateway, agent, broker and keys")
    .option("--json", "print one line of JSON when ready: base_url, api_key, runtime")
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
