/**
 * Gathers what a release consists of in `release/`: the package, the executables for Linux, and their checksums. The
 * workflow `release` runs it with the tag; `npm run release:dry` runs it, and the checks before it, on this machine.
 *
 * usage: node infra/package/release.ts [v1.2.3]
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectFolder } from "./bundle.ts";

const [tag] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync(join(projectFolder, "package.json"), "utf8")) as { version: string };
if (tag !== undefined) assertVersion(tag);

const folder = join(projectFolder, "release");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder);
const shell = process.platform === "win32";
execFileSync("npm", ["pack", `--pack-destination=${folder}`], { cwd: projectFolder, stdio: "inherit", shell });
execFileSync(process.execPath, [join(import.meta.dirname, "executables.ts")], { stdio: "inherit" });
const executables = join(projectFolder, "executables");
for (const name of readdirSync(executables)) copyFileSync(join(executables, name), join(folder, name));
const names = readdirSync(folder).toSorted();
writeFileSync(join(folder, "SHA256SUMS"), names.map((name) => `${checksumOf(name)}  ${name}\n`).join(""));
for (const name of names) console.log(`${name}: ${(statSync(join(folder, name)).size / 1e6).toFixed(1)} MB`);

/** Throws if the tag, package.json, compose.yaml and CHANGELOG.md do not all name one version. */
function assertVersion(wanted: string): void {
  const textOf = (path: string): string => readFileSync(join(projectFolder, path), "utf8");
  const wrong = [
    wanted === `v${version}` ? [] : `the tag ${wanted} is not v${version}, the version of package.json`,
    textOf("infra/compose.yaml").includes(`image: trunkline:${version}\n`)
      ? []
      : `infra/compose.yaml names another image`,
    textOf("CHANGELOG.md").includes(`\n## ${version}\n`) ? [] : `CHANGELOG.md has no section ${version}`,
  ].flat();
  if (wrong.length > 0) throw new Error(wrong.join("; "));
}

function checksumOf(name: string): string {
  return createHash("sha256")
    .update(readFileSync(join(folder, name)))
    .digest("hex");
}
