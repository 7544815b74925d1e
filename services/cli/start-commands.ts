import { Command, Option } from "commander";
import type { Environment } from "#shared/process/config.ts";
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

/** The values of `--gguf`, one for each use of the option. */
export interface GgufGiven {
  readonly gguf?: readonly string[];
}

/** Makes the option that serves model files without a model server, for commands that start an agent. */
function ggufOption(): Option {
  const gather = (file: string, before: readonly string[] = []): readonly string[] => [...before, file];
  const what = "serve a GGUF file, or several with commas between (TRUNKLINE_GGUF); may be said more than once";
  return new Option("--gguf <file>", what).argParser(gather);
}

/** Returns the environment with the values of `--gguf`, which override its own. */
export function withGguf(environment: Environment, { gguf }: GgufGiven): Environment {
  return gguf === undefined ? environment : { ...environment, TRUNKLINE_GGUF: gguf.join(",") };
}
