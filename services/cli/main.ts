#!/usr/bin/env node
// Every Node since 14 can read this file, so that an older one gets a clear message. All else is imported after that.
import module from "node:module";

const services = ["up", "gateway", "agent"];
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major > 22 || (major === 22 && minor >= 19)) {
  void start();
} else {
  const remedy =
    "Install a newer one (https://nodejs.org), put it first on the PATH, or have npx fetch one: npx -y -p node@24 -p <package> trunkline …";
  process.stderr.write(
    `trunkline: needs Node 22.19 or newer; this is ${process.version} (${process.execPath}). ${remedy}\n`,
  );
  process.exitCode = 69;
}

async function start(): Promise<void> {
  // Erases a join line from the list of processes, which other users of this host can read.
  if (process.argv.some((word) => word.includes("/#"))) process.title = "trunkline agent";
  hideWarningAboutSqlite();
  // With the compile cache, a command starts in little more than half the time. Only modules imported after this line are
  // cached.
  module.enableCompileCache();
  const { trunkline } = await import("./trunkline.ts");
  const { argv, env: environment, stdout, stderr } = process;
  const [, , command = ""] = argv;
  // A reader such as `head` may close its end early: a command then has nothing left to do, and a service goes on.
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    if (!services.includes(command)) process.exit();
  });
  process.exitCode = await trunkline({ arguments: argv.slice(2), environment, stdout, stderr });
  // A connect to a host that does not answer would keep a stopped service alive for minutes.
  if (services.includes(command)) stdout.write("", () => process.exit());
}

/** Node 22 and 24 call `node:sqlite` experimental, on standard error and at every start. */
function hideWarningAboutSqlite(): void {
  const emitWarning = process.emitWarning.bind(process) as (...given: unknown[]) => void;
  process.emitWarning = (...given: unknown[]) => {
    if (!String(given[0]).startsWith("SQLite is an experimental feature")) emitWarning(...given);
  };
}
