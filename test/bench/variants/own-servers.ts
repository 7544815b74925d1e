import { findServers } from "../../harness/find-servers.ts";
import type { FoundServers } from "../../harness/found-servers.ts";

let looked: Promise<FoundServers> | undefined;

/** NATS and Redis as programs of this machine: neither the CPU time of a container nor that of a lent server can be read. */
export function ownServers(): Promise<FoundServers> {
  looked ??= findServers({
    environment: { ...withoutLent(process.env), DOCKER_HOST: "none" },
    mayInstall: process.getuid?.() === 0,
    say: (line) => process.stderr.write(`${line}\n`),
  });
  return looked;
}

/** Why there are none, if so. */
export async function ownServersMissing(): Promise<string | undefined> {
  return ownServers().then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
}

function withoutLent(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { TRUNKLINE_TEST_NATS_URL: _nats, TRUNKLINE_TEST_REDIS_URL: _redis, ...rest } = environment;
  return rest;
}
