import { Command } from "commander";
import type { Environment } from "#shared/process/config.ts";
import { runAgent } from "../agent/main.ts";

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
    .action(() => runAgent(environment));
}
