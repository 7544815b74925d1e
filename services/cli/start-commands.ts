import { Command, Option } from "commander";
import type { Environment } from "#shared/process/config.ts";
import { commandIn, type Surroundings } from "./command-line.ts";
import {
  addJoinOptions,
  type GgufGiven,
  ggufOption,
  type JoinGiven,
  type JoinSurroundings,
  type PublicGiven,
  publicOption,
  readJoinLine,
  withGguf,
  withPublic,
} from "./start-options.ts";
import type { UpGiven, UpSurroundings } from "./run-up.ts";
import { addServiceCommands } from "./service/agent-service.ts";

/**
 * Makes the command `trunkline up`: gateway and agent in one process. The broker and the key store are embedded unless
 * others are configured.
 */
export function upCommand(surroundings: UpSurroundings): Command {
  return new Command("up")
    .description("run everything in one process: gateway, agent, broker and keys")
    .option("--json", "print one line of JSON when ready: base_url, api_key, runtime, and public_url with --public")
    .addOption(
      new Option("--hide-key", "tell the file of the API key, and not the key: for logs that others read").conflicts(
        "json",
      ),
    )
    .addOption(ggufOption())
    .addOption(publicOption())
    .addHelpText(
      "after",
      `
Uses the model servers on this machine, or the files that --gguf names, or a demonstration when there are none. Keys
are kept in TRUNKLINE_STATE_DIR.
TRUNKLINE_NATS_URL and TRUNKLINE_REDIS_URL turn the embedded broker and key store into real ones.

With --public GPU machines elsewhere can be paired with this site, and there is no demonstration. The port opens to other
hosts when it has a certificate (TRUNKLINE_TLS_CERT, TRUNKLINE_TLS_KEY), or to the proxies of TRUNKLINE_TRUSTED_PROXIES
alone; otherwise it stays on 127.0.0.1, for a proxy on this host.

Examples:
  trunkline up
  trunkline up --gguf model.gguf
  TRUNKLINE_PORT=9000 trunkline up --json
  trunkline up --public https://models.example.org`,
    )
    .action(async (given: UpGiven) => {
      const { runUp } = await import("./run-up.ts");
      await runUp(surroundings, given);
    });
}

export function gatewayCommand(environment: Environment): Command {
  return new Command("gateway")
    .description("run a gateway: the endpoint that clients talk to")
    .addOption(publicOption())
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
    .action(async (given: PublicGiven) => {
      // Imported here, and likewise in the other commands: a command that runs no service then starts in little more
      // than half the time.
      const { runGateway } = await import("../gateway/main.ts");
      await runGateway(withPublic(environment, given));
    });
}

interface AgentGiven extends GgufGiven, JoinGiven {
  readonly settings?: string;
  readonly logFile?: string;
}

export function agentCommand(surroundings: Surroundings & JoinSurroundings): Command {
  const agent = commandIn("agent", surroundings)
    .summary("run an agent, or install it: on a GPU machine")
    .description("run an agent on a GPU machine, beside its model server; or install it as a service")
    .enablePositionalOptions();
  addJoinOptions(agent)
    .addOption(ggufOption())
    .addOption(new Option("--settings <file>", "read settings from a file of lines NAME=value; the environment wins"))
    .addOption(new Option("--log-file <file>", "write the log to a file, which is put aside as <file>.1 at 10 MB"))
    .addHelpText(
      "after",
      `
Dials out to its site: the machine needs no open port. Pair it once, with the line that "trunkline machines pair" prints on
the site; the pairing is kept in TRUNKLINE_STATE_DIR, and "trunkline agent" uses it from then on. HTTPS_PROXY and NO_PROXY
are heeded. With TRUNKLINE_NATS_URL the agent connects to the site's NATS instead.

Uses the model servers that it finds on this machine, or those at TRUNKLINE_RUNTIME_URL, and waits for them when they are
not there yet. With --gguf it needs none: llama.cpp runs in the agent itself, by node-llama-cpp, which is installed apart
from Trunkline.

Examples:
  trunkline agent --join 'https://models.example.org/#…'
  trunkline agent --join -                               # asks for the line, and keeps it off the list of processes
  trunkline agent --gguf model.gguf
  trunkline agent install                                # a service that survives reboots
  TRUNKLINE_NATS_URL=tls://attic:…@broker.example:4222 TRUNKLINE_MACHINE=attic trunkline agent`,
    )
    .action(async (given: AgentGiven) => {
      const { settings, logFile, replace = false } = given;
      const line = await readJoinLine(given, surroundings);
      if (logFile !== undefined) await logTo(logFile);
      const { environment: own, stderr } = surroundings;
      const environment = withGguf(settings === undefined ? own : await withFile(own, settings), given);
      const { joinMachine, runAgent } = await import("../agent/main.ts");
      const say = (text: string): void => void stderr.write(`trunkline: ${text}\n`);
      if (line !== undefined) await joinMachine(environment, { line, replace, say });
      await runAgent(environment);
    });
  addServiceCommands(agent, surroundings);
  return agent;
}

/** Returns the environment with the settings of a file below it. */
async function withFile(environment: Environment, file: string): Promise<Environment> {
  const { settingsIn, trustAuthorities } = await import("./service/service-settings.ts");
  const settings = settingsIn(file);
  trustAuthorities(settings);
  return { ...settings, ...environment };
}

/** Sends all that this process has to say on standard error to a file. */
async function logTo(path: string): Promise<void> {
  const { LogFile } = await import("./service/log-file.ts");
  const file = new LogFile(path);
  process.stderr.write = (text: string | Uint8Array): boolean => file.write(text.toString());
}
