import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FoundServer, foundServers } from "../found-servers.ts";
import { freePort } from "../free-port.ts";
import { makeNatsCertificates, type NatsCertificates } from "../self-signed.ts";
import { startNatsServer } from "../nats-server.ts";
import { startOwnServer, type OwnServer, type ServerBody } from "../own-server.ts";
import { readRedisInfo } from "../redis-server.ts";
import { ServerContainer } from "../server-container.ts";
import { ServerProcess } from "../server-process.ts";
import { infraFolder, readCompose } from "./compose-file.ts";

type Environment = Readonly<Record<string, string>>;

export interface ConfiguredNats extends OwnServer {
  readonly monitoringUrl: string;
  readonly certificates: NatsCertificates;
}

/** The variables of nats.conf: the passwords, and the certificate of this host. */
export function natsVariables(environment: Environment, certificates: NatsCertificates): Environment {
  const passwords = Object.entries(environment).filter(([name]) => name.startsWith("NATS_PASSWORD_"));
  const { certificateFile, keyFile } = certificates;
  return { ...Object.fromEntries(passwords), NATS_TLS_CERT: certificateFile, NATS_TLS_KEY: keyFile };
}

/**
 * NATS with nats.conf word for word. Its variables stand before it in the file itself, which NATS looks at before the
 * environment: so it is the same in a container. Only the monitoring port is another, since 8222 may be taken.
 */
export async function startConfiguredNats(environment: Environment): Promise<ConfiguredNats> {
  const certificates = await makeNatsCertificates();
  const config = await readFile(join(infraFolder, "nats.conf"), "utf8");
  return startNatsAsConfigured({ config, variables: natsVariables(environment, certificates), certificates });
}

/** A server with a configuration of ours and the certificate of this host. */
export async function startNatsAsConfigured({
  config,
  variables,
  certificates,
  found,
}: {
  readonly config: string;
  readonly variables: Environment;
  readonly certificates: NatsCertificates;
  /** Outside of vitest, where nothing was provided. */
  readonly found?: FoundServer | undefined;
}): Promise<ConfiguredNats> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-infra-"));
  try {
    const configFile = join(folder, "nats.conf");
    const lines = Object.entries(variables).map(([name, value]) => `${name}: "${value}"\n`);
    await writeFile(configFile, lines.join("") + config);
    const monitoring = `127.0.0.1:${await freePort()}`;
    const server = await startNatsServer({
      configFile,
      extraConfig: `http: "${monitoring}"`,
      files: certificates.files,
      ...(found !== undefined && { found }),
    });
    return { ...server, certificates, monitoringUrl: `http://${monitoring}` };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Redis with redis.conf, and the password in a file as compose.yaml gives it; the URL has it too. */
export async function startConfiguredRedis(environment: Environment): Promise<OwnServer> {
  const { REDIS_PASSWORD: password = "" } = environment;
  const found = foundServers().redis;
  if (found.by === "lent") throw new Error(`No Redis server of one's own: ${found.variable} only lends one`);
  const configFile = join(infraFolder, "redis.conf");
  const config = await readFile(configFile, "utf8");
  const { services, configs } = readCompose(environment);
  const [, , ...args] = services["redis"]?.command ?? [];
  const secret = configs["redis-password"]?.content ?? "";
  const open = async (port: number): Promise<ServerBody> =>
    found.by === "docker"
      ? inContainer({ image: found.image, config, secret, args, port })
      : asProcess({ binary: found.path, configFile, secret, args, port });
  const server = await startOwnServer({
    title: "redis-server",
    scheme: "redis",
    open,
    answers: async ({ host, processId }, port) => {
      const info = await readRedisInfo(new URL(`redis://:${password}@${host}:${port}`));
      return processId === undefined || info.processId === processId;
    },
  });
  return { ...server, url: server.url.replace("//", `//:${password}@`) };
}

interface RedisRun {
  readonly secret: string;
  /** Behind redis.conf, as compose.yaml has them. */
  readonly args: readonly string[];
  readonly port: number;
}

const passwordFile = "/etc/trunkline/redis-password.conf";

async function asProcess(run: RedisRun & { binary: string; configFile: string }): Promise<ServerBody> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-redis-"));
  const secretFile = join(folder, "password.conf");
  await writeFile(secretFile, run.secret);
  const args = run.args.map((arg) => (arg === passwordFile ? secretFile : arg));
  const where = ["--bind", "127.0.0.1", "--port", String(run.port), "--dir", folder];
  return new ServerProcess({ binary: run.binary, args: [run.configFile, ...args, ...where], folder });
}

function inContainer(run: RedisRun & { image: string; config: string }): ServerBody {
  const path = "/tmp/redis.conf";
  const secretPath = "/tmp/password.conf";
  const files = `printf '%s' "$REDIS_CONFIG" > ${path} && printf '%s' "$REDIS_SECRET" > ${secretPath}`;
  const args = run.args.map((arg) => (arg === passwordFile ? secretPath : arg));
  return new ServerContainer({
    image: run.image,
    entrypoint: ["sh", "-c", `${files} && exec redis-server "$@"`, "sh"],
    command: [path, ...args, "--dir", "/tmp"],
    environment: { REDIS_CONFIG: run.config, REDIS_SECRET: run.secret },
    ports: { inside: 6379, outside: run.port },
  });
}
