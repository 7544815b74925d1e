import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { aptInstall, findBinary, isExecutable } from "./find-binary.ts";
import { dockerEngineAnswers } from "./server-container.ts";
import type { FoundServer, FoundServers } from "./found-servers.ts";
import { readNatsInfo } from "./nats-info.ts";
import { startNatsServer } from "./nats-server.ts";
import type { OwnServer } from "./own-server.ts";
import { readRedisInfo, startRedisServer } from "./redis-server.ts";

/** A kind of server, and each of the ways to come to one. */
interface Kind {
  readonly title: string;
  readonly urlVariable: string;
  readonly binaryVariable: string;
  /** Both of the program and of Debian's package. */
  readonly binary: string;
  readonly image: string;
  version(url: string): Promise<string>;
  start(found: FoundServer): Promise<OwnServer>;
}

const natsKind: Kind = {
  title: "NATS",
  urlVariable: "TRUNKLINE_TEST_NATS_URL",
  binaryVariable: "TRUNKLINE_TEST_NATS_SERVER",
  binary: "nats-server",
  image: "nats:2.12.12-alpine",
  async version(url) {
    const { hostname, port } = new URL(url.split(",")[0] ?? url);
    return (await readNatsInfo({ host: hostname, port: Number(port || 4222) })).version;
  },
  start: (found) => startNatsServer({ found }),
};

const redisKind: Kind = {
  title: "Redis",
  urlVariable: "TRUNKLINE_TEST_REDIS_URL",
  binaryVariable: "TRUNKLINE_TEST_REDIS_SERVER",
  binary: "redis-server",
  image: "redis:7.4.11-alpine",
  version: async (url) => (await readRedisInfo(new URL(url))).version,
  start: (found) => startRedisServer({ found }),
};

/** The machine that is looked at; tests of this file hand in another one than ours. */
export interface SearchPlace {
  readonly environment: NodeJS.ProcessEnv;
  /** Where programs are looked for; by default the PATH and where servers usually are. */
  readonly folders?: readonly string[];
  readonly mayInstall: boolean;
  readonly say: (line: string) => void;
}

/**
 * Decides for NATS and for Redis on its own how tests come to it: lent by URL; a program that is named; a container,
 * when an engine answers; a program that is installed; else installed now, when this is root's Debian. Rejects with
 * the commands to run when there is no way.
 */
export async function findServers(place: SearchPlace = ours()): Promise<FoundServers> {
  const docker = dockerEngineAnswers(place.environment);
  const find = async (kind: Kind): Promise<FoundServer | undefined> =>
    (await lent(kind, place)) ??
    (await named(kind, place)) ??
    ((await docker) ? await inDocker(kind, place) : undefined) ??
    (await installed(kind, place, "on the PATH"));
  let [nats, redis] = await Promise.all([find(natsKind), find(redisKind)]);
  const missing = [...(nats === undefined ? [natsKind] : []), ...(redis === undefined ? [redisKind] : [])];
  if (missing.length > 0 && place.mayInstall) {
    await install(missing, place);
    nats ??= await installed(natsKind, place, "installed by apt-get just now");
    redis ??= await installed(redisKind, place, "installed by apt-get just now");
  }
  if (nats === undefined || redis === undefined) throw new Error(whatToDo(missing));
  return { nats, redis };
}

function ours(): SearchPlace {
  return { environment: process.env, mayInstall: process.getuid?.() === 0, say: (line) => console.log(line) };
}

async function lent(kind: Kind, { environment }: SearchPlace): Promise<FoundServer | undefined> {
  const url = environment[kind.urlVariable];
  if (url === undefined || url === "") return undefined;
  try {
    const version = await kind.version(url);
    return { by: "lent", title: `${version} lent by ${kind.urlVariable}`, url, variable: kind.urlVariable };
  } catch (cause) {
    throw new Error(`${kind.urlVariable} lends a server that does not answer: ${reasonOf(cause)}`, { cause });
  }
}

async function named(kind: Kind, { environment }: SearchPlace): Promise<FoundServer | undefined> {
  const given = environment[kind.binaryVariable];
  if (given === undefined || given === "") return undefined;
  const path = resolve(given);
  if (!(await isExecutable(path))) throw new Error(`${kind.binaryVariable} names ${path}, which cannot be run`);
  return binary(path, { kind, where: `named by ${kind.binaryVariable}` });
}

/** An engine that answers may still be unable to fetch or run the image, so one server is started for a proof. */
async function inDocker(kind: Kind, { say }: SearchPlace): Promise<FoundServer | undefined> {
  const untried: FoundServer = { by: "docker", title: `${kind.image} in Docker`, image: kind.image };
  try {
    await using server = await kind.start(untried);
    return { ...untried, title: `${kind.binary} ${await kind.version(server.url)} in Docker (${kind.image})` };
  } catch (error) {
    say(`${kind.title}: Docker answers, but ${kind.image} does not start in it: ${reasonOf(error)}`);
    return undefined;
  }
}

async function installed(kind: Kind, { folders }: SearchPlace, where: string): Promise<FoundServer | undefined> {
  const path = await findBinary(kind.binary, folders);
  return path === undefined ? undefined : binary(path, { kind, where });
}

async function binary(path: string, { kind, where }: { kind: Kind; where: string }): Promise<FoundServer> {
  const { stdout } = await promisify(execFile)(path, ["--version"]);
  const version = /\d+\.\d+\.\d+\S*/.exec(stdout)?.[0] ?? "of unknown version";
  return { by: "binary", title: `${kind.binary} ${version} ${where}`, path };
}

async function install(kinds: readonly Kind[], { folders, say }: SearchPlace): Promise<void> {
  if ((await findBinary("apt-get", folders)) === undefined) return;
  const packages = kinds.map((kind) => kind.binary);
  say(`Installing ${packages.join(" and ")} by apt-get, once, since tests need real servers and none was found.`);
  await aptInstall(packages).catch((error: unknown) => say(`apt-get did not succeed: ${reasonOf(error)}`));
}

function whatToDo(missing: readonly Kind[]): string {
  const packages = missing.map((kind) => kind.binary).join(" ");
  const commands =
    process.platform === "darwin"
      ? ["brew update", `brew install ${packages.replace("redis-server", "redis")}`]
      : ["sudo apt-get update", `sudo apt-get install -y --no-install-recommends ${packages}`];
  return [
    `The tests need real servers and found no ${packages.replace(" ", " and no ")}. Run these two commands:`,
    ...commands.map((command) => `  ${command}`),
    `or start Docker, or lend a server by ${missing.map((kind) => kind.urlVariable).join(" and ")}.`,
  ].join("\n");
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
