import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { type Command, Option } from "commander";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import type { JoinLine } from "#shared/protocol/pairing.ts";
import { type CliCommand, commandIn, type Surroundings } from "./command-line.ts";
import type { UpGiven } from "./run-up.ts";

/**
 * Makes the command `trunkline up`: gateway and agent in one process. The broker and the key store are embedded unless
 * others are configured.
 */
export function upCommand(surroundings: Surroundings): Command {
  const hideKey = "tell the file of the API key, and not the key: for logs that others read";
  return commandIn("up", surroundings)
    .description("run everything in one process: gateway, agent, broker and keys")
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
    .action(async (given: UpGiven) => {
      const { runUp } = await import("./run-up.ts");
      await runUp(surroundings, given);
    });
}

export function gatewayCommand(surroundings: Surroundings): Command {
  return commandIn("gateway", surroundings)
    .description("run a gateway: the endpoint that clients talk to")
    .addOption(publicOption())
    .more(`
Needs TRUNKLINE_NATS_URL. With TRUNKLINE_REDIS_URL (and TRUNKLINE_KEY_PEPPER) any number of gateways share their keys;
without, this one keeps them in TRUNKLINE_STATE_DIR.

Example:
  export TRUNKLINE_NATS_URL=nats://127.0.0.1:4222 TRUNKLINE_REDIS_URL=redis://127.0.0.1:6379
  export TRUNKLINE_KEY_PEPPER="$(openssl rand -base64 32)"    # one secret for all gateways: keep it
  trunkline gateway`)
    .action(async (given: StartGiven) => {
      // Imported here, and likewise in the other commands: a command that runs no service then starts in little more
      // than half the time.
      const { runGateway } = await import("../gateway/main.ts");
      await runGateway(withOptions(surroundings.environment, given));
    });
}

/** The values of the options that several of `up`, `gateway` and `agent` have. */
export interface StartGiven {
  readonly join?: string;
  readonly joinFile?: string;
  readonly replace?: true;
  readonly gguf?: readonly string[];
  readonly public?: string;
}

/** Adds the options by which a machine joins a site, and `--gguf`. */
export function addAgentOptions(command: CliCommand): CliCommand {
  const join = "join a site first: - reads its line from standard input; a line in place of - may be seen by others";
  return command
    .addOption(new Option("--join <line>", join).conflicts("joinFile"))
    .option("--join-file <file>", "like --join, with the line from a file")
    .option("--replace", "with --join: leave the site that this machine is paired with")
    .addOption(ggufOption());
}

/** Makes the option that serves model files without a model server. */
function ggufOption(): Option {
  const gather = (file: string, before: readonly string[] = []): readonly string[] => [...before, file];
  const what = "serve a GGUF file, or several with commas between (TRUNKLINE_GGUF); may be said more than once";
  return new Option("--gguf <file>", what).argParser(gather);
}

function publicOption(): Option {
  return new Option("--public <url>", "the URL by which other hosts reach this site (TRUNKLINE_PUBLIC_URL)");
}

/** Returns the environment with the values of `--gguf` and `--public`, which override its own. */
export function withOptions(environment: Environment, { gguf, public: url }: StartGiven): Environment {
  return {
    ...environment,
    ...(gguf === undefined ? {} : { TRUNKLINE_GGUF: gguf.join(",") }),
    ...(url === undefined ? {} : { TRUNKLINE_PUBLIC_URL: url }),
  };
}

type Asking = Pick<Surroundings, "stdin" | "stderr">;

/**
 * Returns the join line that was given, or undefined. It is parsed here and not by the option: a usage error would
 * repeat it.
 */
export async function readJoinLine(given: StartGiven, surroundings: Asking): Promise<JoinLine | undefined> {
  const { join, joinFile, replace } = given;
  if (join === undefined && joinFile === undefined) {
    if (replace) throw new StartFailure(exitCodes.usage, "--replace goes with --join or --join-file.");
    return undefined;
  }
  const typed = join === "-" ? await askForLine(surroundings) : (join ?? "");
  const text = joinFile === undefined ? typed : readLineOf(joinFile);
  const { parseJoinLine } = await import("#shared/protocol/pairing.ts");
  const line = parseJoinLine(text);
  if (line !== undefined) return line;
  const isClear = /^http:/i.test(text.trim());
  throw new StartFailure(
    exitCodes.usage,
    isClear
      ? "A join line with http:// works on this host only: start the site with an https:// URL (--public), and make a new line."
      : "This is no join line: paste the whole line that the site printed, from https:// to its end, in quotes.",
  );
}

function readLineOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    const message = `--join-file: the file ${file} cannot be read; name one that this user may read.`;
    throw new StartFailure(exitCodes.usage, message, { cause: error });
  }
}

/** Reads one line. A person at a terminal need not end the input. */
async function askForLine({ stdin = process.stdin, stderr }: Asking): Promise<string> {
  if (stdin.isTTY) stderr.write("Paste the join line and press Enter: ");
  using lines = createInterface({ input: stdin, terminal: false });
  // Windows' `cmd` echoes the quotes too.
  for await (const line of lines) if (line.trim() !== "") return line.trim().replace(/^"(.*)"$/, "$1");
  return "";
}
