import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { readOwnFile } from "#shared/process/own-files.ts";
import { packagePath } from "#shared/protocol/pairing.ts";
import { serveFixed } from "../http/serve-fixed.ts";

/** Time in which a checkout makes its package; it takes a few seconds. */
const packMs = 60_000;
/** Time for which a failure answers all requests. Strangers may ask, and each attempt costs seconds of a processor. */
export const packageRetryMs = 600_000;

interface PackageParts {
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "warn">;
  readonly read?: () => Promise<Buffer>;
}

/**
 * Mounts the route of the package. It holds no secret, so a machine can fetch it before it is paired. Any query gets the
 * same package: a machine that was set up with an earlier version still finds the site's.
 */
export function servePackage(server: FastifyInstance, { clock, log, read = readPackage }: PackageParts): void {
  let failed: { readonly fault: Fault; readonly untilMs: number } | undefined;
  let loggedReason = "";
  const readOnce = async (): Promise<Buffer> => {
    if (failed !== undefined && clock.now() < failed.untilMs) throw failed.fault;
    try {
      return await read();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const fault = notThere();
      failed = { fault, untilMs: clock.now() + packageRetryMs };
      if (reason !== loggedReason) log.warn({ reason, retryAfterMs: packageRetryMs }, fault.message);
      loggedReason = reason;
      throw fault;
    }
  };
  serveFixed(server, packagePath, { type: "application/gzip", read: readOnce });
}

const isCheckout = import.meta.filename.endsWith(".ts");

/** Reads the package beside the bundle. A checkout makes its own, at the first request. */
async function readPackage(): Promise<Buffer> {
  if (!isCheckout) return readOwnFile(new URL("agent.tgz", import.meta.url));
  const script = fileURLToPath(new URL("../../../infra/package/build.ts", import.meta.url));
  await promisify(execFile)(process.execPath, [script], { timeout: packMs });
  return readFile(new URL("../../../dist/agent.tgz", import.meta.url));
}

function notThere(): Fault {
  const remedy = isCheckout
    ? "`npm ci` in its checkout installs what makes it."
    : "Start it from the package or the image of a release.";
  return new Fault("unknown_url", {
    message: `This gateway was started without the package that machines install. ${remedy}`,
  });
}
