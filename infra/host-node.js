// Runs at the end of `npm ci` when the Node of the package `node` does not start, for example for want of libatomic. The Node
// that runs npm runs this file, whatever its version. It takes the place of the other one if it can run the sources.
import { spawnSync } from "node:child_process";
import { rmSync, symlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** The first version that strips types by itself and knows `using`. */
const leastMajor = 24;

const link = fileURLToPath(new URL("../node_modules/.bin/node", import.meta.url));
const { stderr, error } = spawnSync(link, ["--version"], { encoding: "utf8" });
const reason = (stderr || String(error)).trim();
if (Number(process.versions.node.split(".")[0]) >= leastMajor) {
  rmSync(link, { force: true });
  symlinkSync(process.execPath, link);
  console.error(
    `The Node from npm does not start (${reason}). ${process.execPath} (${process.version}) is used instead.`,
  );
} else {
  console.error(`The Node from npm does not start (${reason}). Either of these helps:
  apt-get install libatomic1    # Debian, Ubuntu; elsewhere the package is called libatomic
  Node ${leastMajor} or newer on the PATH, and npm ci again; this is ${process.version}`);
  process.exitCode = 1;
}
