import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type FoundServer, foundServers, lentServer, type SomeServer } from "./found-servers.ts";
import { readNatsInfo } from "./nats-info.ts";
import { type OwnServer, type ServerBody, startOwnServer } from "./own-server.ts";
import { ServerContainer } from "./server-container.ts";
import { ServerProcess } from "./server-process.ts";

export interface NatsServerOptions {
  /** A configuration that stands in for the harness's own settings; other files that it names are in `files`. */
  configFile?: string;
  /** Files of this host that the configuration names; a container gets them at the same paths. */
  files?: readonly string[];
  /** Put behind the settings, so what it says wins. */
  extraConfig?: string;
  port?: number;
  maxPayloadBytes?: number;
  /** Outside of vitest, where nothing was provided: what `findServers` gave. */
  found?: FoundServer;
}

const defaultMaxPayloadBytes = 1_048_576;
const clientPort = 4222;
/** As `infra/compose.yaml` has it. */
const oneCore = { GOMAXPROCS: "1" };

/** Starts a NATS server that belongs to the caller, with the settings that production has. */
export async function startNatsServer(options: NatsServerOptions = {}): Promise<OwnServer> {
  const found = options.found ?? foundServers().nats;
  if (found.by === "lent") throw new Error(`No NATS server of one's own: ${found.variable} only lends one`);
  const config = await configOf(options);
  const name = `trunkline-test-${randomUUID()}`;
  const open = async (port: number): Promise<ServerBody> =>
    found.by === "docker"
      ? inContainer({ image: found.image, config, name, port, files: options.files ?? [] })
      : asProcess({ binary: found.path, config, name, port });
  return startOwnServer({
    title: "nats-server",
    scheme: "nats",
    port: options.port,
    open,
    answers: async ({ host }, port) => (await readNatsInfo({ host, port })).serverName === name,
  });
}

async function configOf({ configFile, extraConfig, maxPayloadBytes }: NatsServerOptions): Promise<string> {
  const own = ['write_deadline: "2s"', 'ping_interval: "1s"', "ping_max: 2", `max_payload: ${defaultMaxPayloadBytes}`];
  const settings = configFile === undefined ? own.join("\n") : await readFile(configFile, "utf8");
  const payload = maxPayloadBytes === undefined ? "" : `max_payload: ${maxPayloadBytes}`;
  return [settings, payload, extraConfig ?? "", ""].join("\n");
}

interface Run {
  readonly config: string;
  readonly name: string;
  readonly port: number;
}

async function asProcess({ binary, config, name, port }: Run & { binary: string }): Promise<ServerBody> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-nats-"));
  const configPath = join(folder, "nats.conf");
  // Its name stands in the file: a server that was named by a flag refuses to read its configuration anew.
  await writeFile(configPath, `${config}\nserver_name: "${name}"\n`);
  const args = ["-c", configPath, "-a", "127.0.0.1", "-p", String(port)];
  return new ServerProcess({ binary, args, folder, environment: oneCore });
}

function inContainer({
  image,
  config,
  name,
  port,
  files,
}: Run & { image: string; files: readonly string[] }): ServerBody {
  const path = "/tmp/nats.conf";
  const copies = files.map((file, place) => `mkdir -p ${dirname(file)} && printf '%s' "$FILE_${place}" > ${file} && `);
  const contents = files.map((file, place) => [`FILE_${place}`, readFileSync(file, "utf8")]);
  const script = `${copies.join("")}printf '%s' "$NATS_CONFIG" > ${path} && exec nats-server "$@"`;
  return new ServerContainer({
    image,
    entrypoint: ["sh", "-c", script, "sh"],
    command: ["-c", path, "-a", "0.0.0.0", "-p", String(clientPort), "--server_name", name],
    environment: { ...oneCore, ...Object.fromEntries(contents), NATS_CONFIG: config },
    ports: { inside: clientPort, outside: port },
  });
}

/** Some NATS: a fresh one unless one was lent. */
export async function natsUrl(): Promise<SomeServer> {
  const { nats } = foundServers();
  return nats.by === "lent" ? lentServer(nats.url) : startNatsServer();
}
