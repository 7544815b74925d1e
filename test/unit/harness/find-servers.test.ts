import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findServers } from "../../harness/find-servers.ts";

let folder: string;
let lender: Server | undefined;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "trunkline-find-servers-"))));
afterEach(async () => {
  lender?.close();
  lender = undefined;
  await rm(folder, { recursive: true, force: true });
});

async function program(name: string, says: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, `#!/bin/sh\necho "${says}"\n`);
  await chmod(path, 0o755);
  return path;
}

/** A machine whose only programs are those in the folder, and whose Docker socket nobody serves. */
function find(environment: NodeJS.ProcessEnv = {}): ReturnType<typeof findServers> {
  const noDocker = { DOCKER_HOST: `unix://${folder}/nobody.sock` };
  return findServers({
    environment: { ...noDocker, ...environment },
    folders: [folder],
    mayInstall: false,
    say: () => {},
  });
}

async function lendNats(): Promise<string> {
  const server = createServer((socket) => socket.end('INFO {"server_name":"x","version":"2.14.5"}\r\n'));
  lender = server;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return `nats://user:secret@127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

test("a lent NATS server goes before one on the PATH, and Redis is decided for itself", async () => {
  await program("nats-server", "nats-server: v2.9.10");
  await program("redis-server", "Redis server v=7.0.15");
  const url = await lendNats();
  const { nats, redis } = await find({ TRUNKLINE_TEST_NATS_URL: url });
  expect(nats).toMatchObject({ by: "lent", url, title: "2.14.5 lent by TRUNKLINE_TEST_NATS_URL" });
  expect(redis.by).toBe("binary");
});

test("a lent server that does not answer is an error and no reason to look further", async () => {
  await program("nats-server", "nats-server: v2.9.10");
  await program("redis-server", "Redis server v=7.0.15");
  const url = await lendNats();
  await new Promise((resolve) => lender?.close(resolve));
  const failure = await find({ TRUNKLINE_TEST_NATS_URL: url }).catch((error: unknown) => String(error));
  expect(failure).toContain("TRUNKLINE_TEST_NATS_URL lends a server that does not answer");
  expect(failure).not.toContain("secret");
});

test("a program that is named goes before one on the PATH", async () => {
  await program("nats-server", "nats-server: v2.9.10");
  await program("redis-server", "Redis server v=7.0.15");
  const path = await program("newer", "nats-server: v2.12.7");
  const { nats } = await find({ TRUNKLINE_TEST_NATS_SERVER: path });
  expect(nats).toMatchObject({ path, title: "nats-server 2.12.7 named by TRUNKLINE_TEST_NATS_SERVER" });
});

test("without a way to a server it says the two commands to run, for what is missing only", async () => {
  await program("nats-server", "nats-server: v2.9.10");
  const failure = await find().catch((error: unknown) => String(error));
  expect(failure).toContain("found no redis-server. Run these two commands:");
  expect(failure).toContain("TRUNKLINE_TEST_REDIS_URL");
  expect(failure).not.toContain("nats");
});
