import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, realpath, rename, rm } from "node:fs/promises";
import { existsSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { findBinary } from "../find-binary.ts";
import { infraFolder } from "./compose-file.ts";

const root = join(infraFolder, "..");
const stepTimeoutMs = 300_000;
const debian = "bookworm";
const baseName = "localhost/trunkline-test-base";
const certificates = "/etc/ssl/certs/ca-certificates.crt";

/** Returns the reason why no image can be built on this machine; undefined if one can. */
export async function whyNoImage(): Promise<string | undefined> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "only root on Linux can build it";
  for (const tool of ["buildah", "debootstrap", "unshare", "nsenter"]) {
    if ((await findBinary(tool)) === undefined) return `there is no ${tool} on the PATH`;
  }
  return undefined;
}

const imageConfig = z.object({
  Docker: z.object({
    config: z.object({
      User: z.string(),
      WorkingDir: z.string(),
      Env: z.array(z.string()),
      Entrypoint: z.array(z.string()),
      Cmd: z.array(z.string()),
      Healthcheck: z.object({ Test: z.array(z.string()) }),
    }),
  }),
});

/**
 * The image of `infra/Dockerfile`, built by buildah without a container engine. A Debian of debootstrap with Node takes
 * the place of the image `node`, which would have to come from a registry.
 */
export class BuiltImage implements AsyncDisposable {
  readonly config: z.infer<typeof imageConfig>["Docker"]["config"];
  /** The root file system of a container of the image. */
  readonly rootFolder: string;
  readonly #storeFolder: string;

  private constructor(storeFolder: string, rootFolder: string, config: BuiltImage["config"]) {
    this.#storeFolder = storeFolder;
    this.rootFolder = rootFolder;
    this.config = config;
  }

  static async build(): Promise<BuiltImage> {
    const storeFolder = await mkdtemp(join(tmpdir(), "trunkline-image-"));
    const buildah = buildahIn(storeFolder);
    try {
      const base = await buildah("from", "scratch");
      await buildah("add", "--quiet", base, await baseArchive(), "/");
      const given =
        process.env["NODE_EXTRA_CA_CERTS"] === undefined ? [] : [`--env=NODE_EXTRA_CA_CERTS=${certificates}`];
      await buildah("config", "--env=PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", ...given, base);
      await buildah("commit", "--quiet", "--rm", base, baseName);
      // The packages come from npm's cache on this machine as far as they are there.
      const { stdout: cache } = await promisify(execFile)("npm", ["config", "get", "cache"]);
      await mkdir(cache.trim(), { recursive: true });
      const image = ["--build-arg", `NODE_IMAGE=${baseName}`, "--file", join(infraFolder, "Dockerfile")];
      const volume = ["--volume", `${cache.trim()}:/root/.npm`];
      await buildah("build", "--format=docker", "--network=host", ...volume, ...image, "--tag=trunkline-test", root);
      const container = await buildah("from", "trunkline-test");
      const config = imageConfig.parse(JSON.parse(await buildah("inspect", container))).Docker.config;
      return new BuiltImage(storeFolder, await buildah("mount", container), config);
    } catch (error) {
      await removeStore(storeFolder);
      throw error;
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return removeStore(this.#storeFolder);
  }
}

function buildahIn(storeFolder: string): (...args: readonly string[]) => Promise<string> {
  const store = ["--storage-driver=vfs", `--root=${storeFolder}/root`, `--runroot=${storeFolder}/run`];
  const env = { ...process.env, BUILDAH_ISOLATION: "chroot" };
  return async (...args) => {
    const options = { env, timeout: stepTimeoutMs, maxBuffer: 64 * 1024 * 1024 };
    const { stdout } = await promisify(execFile)("buildah", [...store, ...args], options);
    return stdout.trim();
  };
}

async function removeStore(folder: string): Promise<void> {
  await buildahIn(folder)("umount", "--all").catch(() => undefined);
  await rm(folder, { recursive: true, force: true });
}

/** The base's files, which are made once for all test runs: Debian, this process's Node, npm, and a user `node`. */
async function baseArchive(): Promise<string> {
  const cache = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "trunkline");
  const archive = join(cache, `${debian}-node-${process.versions.node}.tar`);
  if (existsSync(archive)) return archive;
  const run = (command: string, ...args: readonly string[]) =>
    promisify(execFile)(command, args, { timeout: stepTimeoutMs, maxBuffer: 64 * 1024 * 1024 });
  const folder = await mkdtemp(join(tmpdir(), "trunkline-debian-"));
  const inside = (...path: readonly string[]): string => join(folder, ...path);
  try {
    await run("debootstrap", "--variant=minbase", "--include=libatomic1,libstdc++6", debian, folder);
    await rm(inside("var/cache/apt"), { recursive: true });
    await cp(process.execPath, inside("usr/local/bin/node"));
    const npm = join(await realpath((await findBinary("npm")) ?? "npm"), "../..");
    await cp(npm, inside("usr/local/lib/npm"), { recursive: true, verbatimSymlinks: true });
    await run("ln", "--symbolic", "../lib/npm/bin/npm-cli.js", inside("usr/local/bin/npm"));
    await run("chroot", folder, "useradd", "--create-home", "--uid", "1000", "node");
    await mkdir(inside("etc/ssl/certs"), { recursive: true });
    if (existsSync(certificates)) await cp(certificates, inside(certificates), { dereference: true });
    await mkdir(cache, { recursive: true });
    await run(
      "tar",
      "--create",
      "--file",
      `${archive}.${process.pid}`,
      "--directory",
      folder,
      "--one-file-system",
      ".",
    );
    await rename(`${archive}.${process.pid}`, archive);
    return archive;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
