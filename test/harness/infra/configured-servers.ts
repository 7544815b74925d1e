import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { foundServers } from "../found-servers.ts";
import { freePort } from "../free-port.ts";
import { startNatsServer } from "../nats-server.ts";
import { startOwnServer, type OwnServer, type ServerBody } from "../own-server.ts";
import { readRedisInfo } from "../redis-info.ts";
import { ServerContainer } from "../server-container.ts";
import { ServerProcess } from "../server-process.ts";
import { infraFolder } from "./compose-file.ts";

type Environment = Readonly<Record<string, string>>;

/**
 * NATS with nats.conf word for word. The passwords stand before it as variables of the file itself, which NATS looks at
 * before the environment: so it is the same in a container. Only the monitoring port is another, since 8222 may be taken.
 */
export async function startConfiguredNats(environment: Environment): Promise<OwnServer & { monitoringUrl: string }> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-infra-"));
  try {
    const configFile = join(folder, "nats.conf");
    const passwords = Object.entries(environment).filter(([name]) => name.startsWith("NATS_PASSWORD_"));
    const variables = passwords.map(([name, password]) => `${name}: "${password}"\n`).join("");
    await writeFile(configFile, variables + (await readFile(join(infraFolder, "nats.conf"), "utf8")));
    const monitoring = `127.0.0.1:${await freePort()}`;
    const server = await startNatsServer({ configFile, extraConfig: `http: "${monitoring}"` });
    return { ...server, monitoringUrl: `http://${monitoring}` };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Redis with redis.conf, and the password as compose.yaml gives it; the URL has it too. */
export async function startConfiguredRedis({ REDIS_PASSWORD: password = "" }: Environment): Promise<OwnServer> {
  const found = foundServers().redis;
  if (found.by === "lent") throw new Error(`No Redis server of one's own: ${found.variable} only lends one`);
  const configFile = join(infraFolder, "redis.conf");
  const config = await readFile(configFile, "utf8");
  const args = ["--requirepass", password];
  const open = async (port: number): Promise<ServerBody> =>
    found.by === "docker"
      ? inContainer({ image: found.image, config, args, port })
      : asProcess({ binary: found.path, args: [configFile, ...args], port });
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

async function asProcess(run: { binary: string; args: readonly string[]; port: number }): Promise<ServerBody> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-redis-"));
  const where = ["--bind", "127.0.0.1", "--port", String(run.port), "--dir", folder];
  return new ServerProcess({ binary: run.binary, args: [...run.args, ...where], folder });
}

function inContainer(run: { image: string; config: string; args: readonly string[]; port: number }): ServerBody {
  const path = "/tmp/redis.conf";
  return new ServerContainer({
    image: run.image,
    entrypoint: ["sh", "-c", `printf '%s' "$REDIS_CONFIG" > ${path} && exec redis-server "$@"`, "sh"],
    command: [path, ...run.args, "--dir", "/tmp"],
    environment: { REDIS_CONFIG: run.config },
    ports: { inside: 6379, outside: run.port },
  });
}
