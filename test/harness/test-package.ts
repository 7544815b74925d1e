/**
 * Runs the tests of the package on further versions of Node, which npm installs once for all runs.
 *
 * usage: node test/harness/test-package.ts <version of Node> …
 */
import { spawnSync } from "node:child_process";
import { delimiter } from "node:path";
import { fetchNode, ownTarget } from "../../infra/package/fetch-node.ts";

const nodes = process.argv.slice(2).map((version) => fetchNode(version, ownTarget).binary);
const env = { ...process.env, PACKAGE_NODES: nodes.join(delimiter) };
const shell = process.platform === "win32";
const { status } = spawnSync("npx", ["vitest", "run", "test/integration/the-package"], {
  stdio: "inherit",
  shell,
  env,
});
process.exitCode = status ?? 1;
