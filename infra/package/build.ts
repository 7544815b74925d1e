/**
 * Makes the folder `dist` of the npm package: bundles that run without the sources, the files that they serve, the
 * licences of all that is bundled, and `agent.tgz`, the same package for machines. `npm pack` runs it first.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { bundle, projectFolder } from "./bundle.ts";
import { thirdPartyNotices } from "./third-party.ts";

const dist = join(projectFolder, "dist");
const draft = mkdtempSync(join(tmpdir(), "trunkline-package-"));
try {
  const { files, sources } = await bundle([
    "services/cli/main.ts",
    "services/cli/trunkline.ts",
    "infra/healthcheck.ts",
  ]);
  write("THIRD-PARTY.txt", thirdPartyNotices(sources));
  for (const [name, content] of files) write(name, content);
  write("agent.tgz", packedDraft());
  rmSync(dist, { recursive: true, force: true });
  cpSync(join(draft, "dist"), dist, { recursive: true });
} finally {
  rmSync(draft, { recursive: true, force: true });
}

function write(name: string, content: string | Uint8Array): void {
  const path = join(draft, "dist", name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

/** Packs the draft, which has no `agent.tgz` yet. */
function packedDraft(): Uint8Array {
  for (const name of ["package.json", "README.md", "LICENSE"]) cpSync(join(projectFolder, name), join(draft, name));
  const { name, version } = JSON.parse(readFileSync(join(draft, "package.json"), "utf8")) as Record<string, string>;
  // The npm that runs this script hands its options on, so each that matters is given again.
  const given = ["pack", "--ignore-scripts", "--dry-run=false", "--json=false", `--pack-destination=${draft}`];
  execFileSync("npm", given, {
    cwd: draft,
    stdio: ["ignore", "ignore", "inherit"],
    shell: process.platform === "win32",
  });
  return readFileSync(join(draft, `${name}-${version}.tgz`));
}
