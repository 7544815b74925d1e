import { Command } from "commander";
import type { Environment } from "#shared/process/config.ts";
import { ggufOption, withGguf, type GgufGiven } from "./gguf-option.ts";

export function agentCommand(environment: Environment): Command {
  return new Command("agent")
    .description("run an agent: on a GPU machine, beside its model server")
    .addOption(ggufOption())
    .addHelpText(
      "after",
      `
Needs TRUNKLINE_NATS_URL, and dials out to it: the machine needs no open port. Uses the model servers that it finds on
this machine, or those at TRUNKLINE_RUNTIME_URL, and waits for them when they are not there yet. With --gguf it needs
none: llama.cpp runs in the agent itself, by node-llama-cpp, which is installed apart from Trunkline.

Examples:
  TRUNKLINE_NATS_URL=tls://attic:…@broker.example:4222 TRUNKLINE_MACHINE=attic trunkline agent
  TRUNKLINE_NATS_URL=tls://attic:…@broker.example:4222 trunkline agent --gguf model.gguf`,
    )
    .action(async (given: GgufGiven) => {
      const { runAgent } = await import("../agent/main.ts");
      await runAgent(withGguf(environment, given));
    });
}
