/**
 * Makes executables for machines without Node: one file with Node, Trunkline and all that it serves. `npm pack` has made
 * `dist` before. Each becomes an archive with the licences, in `executables/`.
 *
 * usage: node infra/package/executables.ts [linux-x64 linux-arm64 darwin-arm64 win32-x64 …]
 */
import { execFileSync } from "node:child_process";
import {
  copyFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject } from "postject";
import { bundleScript, projectFolder } from "./bundle.ts";
import { executableNode, fetchNode, ownTarget, type Target } from "./fetch-node.ts";

/** Node looks for this text in itself; the last character tells whether a script was put into it. */
const sentinelFuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

const given = process.argv.slice(2) as Target[];
const targets: readonly Target[] = given.length > 0 ? given : ["linux-x64", "linux-arm64"];
const results = join(projectFolder, "executables");
const draft = mkdtempSync(join(tmpdir(), "trunkline-executables-"));
try {
  const blob = await makeBlob();
  mkdirSync(results, { recursive: true });
  for (const target of targets) await makeExecutable(target, blob);
} finally {
  rmSync(draft, { recursive: true, force: true });
}

/** Makes what is put into Node: the script, and the files of `dist` by their paths there. The same on every system. */
async function makeBlob(): Promise<Buffer> {
  const dist = join(projectFolder, "dist");
  const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name));
  const assets = paths.map((path) => [path.slice(dist.length + 1).replaceAll("\\", "/"), path]);
  const bundles = ["main.js", "trunkline.js", "healthcheck.js"];
  const config = {
    main: join(draft, "main.cjs"),
    output: join(draft, "blob"),
    disableExperimentalSEAWarning: true,
    assets: Object.fromEntries(assets.filter(([name = ""]) => !bundles.includes(name))),
  };
  writeFileSync(config.main, await bundleScript("services/cli/main.ts"));
  writeFileSync(join(draft, "config.json"), JSON.stringify(config));
  const { binary } = fetchNode(executableNode, ownTarget);
  execFileSync(binary, ["--experimental-sea-config", join(draft, "config.json")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  return readFileSync(config.output);
}

async function makeExecutable(target: Target, blob: Buffer): Promise<void> {
  const { binary, licence } = fetchNode(executableNode, target);
  const folder = join(draft, `trunkline-${target}`);
  mkdirSync(folder);
  const executable = join(folder, target.startsWith("win32") ? "trunkline.exe" : "trunkline");
  copyFileSync(binary, executable);
  chmodSync(executable, 0o755);
  const isMac = target.startsWith("darwin");
  if (isMac) execFileSync("codesign", ["--remove-signature", executable]);
  await inject(executable, "NODE_SEA_BLOB", blob, {
    sentinelFuse,
    ...(isMac ? { machoSegmentName: "NODE_SEA" } : {}),
  });
  if (isMac) execFileSync("codesign", ["--sign", "-", executable]);
  copyFileSync(join(projectFolder, "LICENSE"), join(folder, "LICENSE"));
  copyFileSync(join(projectFolder, "dist", "THIRD-PARTY.txt"), join(folder, "THIRD-PARTY.txt"));
  copyFileSync(licence, join(folder, "LICENSE-node.txt"));
  const archive = join(results, `trunkline-${target}.tar.gz`);
  execFileSync("tar", ["-czf", archive, "-C", draft, `trunkline-${target}`]);
  console.log(archive);
}
