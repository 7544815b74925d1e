import { execFile } from "node:child_process";
import { chown, glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Endpoint } from "../harness/endpoint.ts";
import { freePort } from "../harness/free-port.ts";
import { BuiltImage, whyNoImage } from "../harness/infra/built-image.ts";
import { OwnedChild } from "../harness/owned-child.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { until } from "../harness/until.ts";

const skipped = await whyNoImage();
if (skipped !== undefined) console.log(`Skipping what builds infra/Dockerfile: ${skipped}.`);

const buildsWithinMs = 600_000;
const startsWithinMs = 15_000;
/** What `docker run --read-only --tmpfs /tmp --volume …` does, without an engine. The command is process 1. */
const containerScript = `
set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount -o remount,bind,ro "$ROOT"
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -t tmpfs tmpfs "$ROOT/tmp"
mount --bind "$VOLUME" "$ROOT/var/lib/trunkline"
exec chroot --userspec=1000:1000 "$ROOT" /usr/bin/env --ignore-environment "$@"
`;

describe.skipIf(skipped !== undefined)("the image of infra/Dockerfile", () => {
  let image: BuiltImage;
  beforeAll(async () => {
    image = await BuiltImage.build();
  }, buildsWithinMs);
  afterAll(() => image[Symbol.asyncDispose]());

  test("the image of infra/Dockerfile holds the bundle, and neither sources nor packages", async () => {
    expect(await Array.fromAsync(glob("**/*.ts", { cwd: join(image.rootFolder, "app") }))).toEqual([]);
    expect(await Array.fromAsync(glob("*", { cwd: join(image.rootFolder, "app") }))).toEqual(
      expect.arrayContaining(["LICENSE", "README.md", "dist", "package.json"]),
    );
    expect(await Array.fromAsync(glob("**/node_modules", { cwd: join(image.rootFolder, "app") }))).toEqual([]);
  });

  test("the image of infra/Dockerfile runs without rights on a read-only file system, serves a chat, is healthy and stops when it is told to", async () => {
    const { User, Env, Entrypoint, Cmd, Healthcheck } = image.config;
    expect(User).toBe("node");
    const volume = folderOfTest();
    await chown(volume, 1_000, 1_000);
    const [port, operationsPort] = [await freePort(), await freePort()];
    const ports = [`TRUNKLINE_PORT=${port}`, `TRUNKLINE_OPERATIONS_PORT=${operationsPort}`];
    const environment = [...Env, ...ports, "TRUNKLINE_RUNTIME=scripted"];
    const command = ["sh", "-c", containerScript, "sh", ...environment, ...Entrypoint, ...Cmd];
    await using container = await OwnedChild.start({
      binary: "unshare",
      args: ["--mount", "--pid", "--fork", "--kill-child=KILL", ...command],
      environment: { PATH: process.env["PATH"], ROOT: image.rootFolder, VOLUME: volume },
    });
    const ready = async () => (await container.stdout()).includes("Trunkline is ready.");
    await until(ready, { what: "the container to be ready", timeoutMs: startsWithinMs }).catch(
      async (error: unknown) => {
        throw new Error(`${String(error)}; it said: ${await container.stderr()}`);
      },
    );
    const children = await readFile(`/proc/${container.processId}/task/${container.processId}/children`, "utf8");
    const first = children.trim();
    const entering = [`--target=${first}`, "--mount", "--pid", "--root", "--wd=/", "--"];
    const asNode = ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "env", "--ignore-environment"];
    const inside = (...args: readonly string[]) =>
      promisify(execFile)("nsenter", [...entering, ...asNode, ...environment, ...args]);

    expect(await readFile(`/proc/${first}/status`, "utf8")).toMatch(/^Uid:\s+1000\s+1000\s+1000\s/m);
    await expect(inside("touch", "/app/dist/x")).rejects.toThrow(/Read-only file system|Permission denied/);
    await expect(inside("touch", "/var/lib/x")).rejects.toThrow(/Read-only file system|Permission denied/);
    const key = (await inside("cat", "/var/lib/trunkline/key")).stdout.trim();
    const endpoint = new Endpoint({ baseUrl: `http://127.0.0.1:${port}/v1`, key });
    const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=2 nonce=abc" });
    expect([await stream.over, stream.done, stream.text]).toEqual(["closed", true, "abc-0 abc-1 "]);
    expect((await fetch(new URL("/agent.tgz", endpoint.baseUrl))).status).toBe(200);
    const [kind, ...check] = Healthcheck.Test;
    expect(kind).toBe("CMD");
    await inside(...check);
    expect((await inside("trunkline", "keys", "list")).stdout).toContain("trunkline up");
    expect(await container.stdout()).not.toContain(key);

    process.kill(Number(first), "SIGTERM");
    await until(() => container.ended, { what: "the container to end", timeoutMs: startsWithinMs });
    expect(await container.exit()).toBe(0);
  });
});
