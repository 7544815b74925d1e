import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { type Clock, sleep } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { readOwnFile } from "#shared/process/own-files.ts";
import { streamProbe, streamProbePath, tunnelPath } from "#shared/protocol/pairing.ts";
import { packagePath } from "#shared/protocol/site-package.ts";
import { refuseOtherMethods } from "../http/answer-faults.ts";
import { KeyedCounts } from "../http/bound-uploads.ts";
import { networkOf } from "../http/request-state.ts";
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

/** Streams under way at once: of one network, and of all. Each takes a second and some hundred bytes. */
export const streamsPerNetworkMax = 4;
export const streamsMax = 64;

/**
 * Mounts the route of a short stream whose events leave at known times. It takes no key, because a machine asks for it
 * before it is paired.
 */
export function probeStreams(server: FastifyInstance, { clock }: { readonly clock: Clock }): void {
  const underWay = new KeyedCounts();
  let all = 0;
  server.get(streamProbePath, (request, reply) => {
    const network = networkOf(request.ip);
    if (underWay.of(network) >= streamsPerNetworkMax || all >= streamsMax) {
      throw new Fault("server_is_overloaded", {
        message: `Only ${streamsPerNetworkMax} streams of a network may be tried at once (streamsPerNetworkMax), and ${streamsMax} of all (streamsMax). Try again in a second.`,
      });
    }
    underWay.add(network, 1);
    all += 1;
    const events = Readable.from(eventsOf(clock));
    events.once("close", () => {
      underWay.add(network, -1);
      all -= 1;
    });
    // The headers of an answer's stream, so that proxies treat both alike.
    reply.header("content-type", "text/event-stream; charset=utf-8").header("cache-control", "no-cache");
    return reply.header("x-accel-buffering", "no").send(events);
  });
  refuseOtherMethods(server, streamProbePath, ["GET", "HEAD"]);
}

async function* eventsOf(clock: Clock): AsyncGenerator<string> {
  const { events, everyMs } = streamProbe;
  for (let event = 1; event <= events; event += 1) {
    if (event > 1) await sleep(clock, everyMs);
    yield `data: {"event":${event},"of":${events}}\n\n`;
  }
}

/** Answers machines at a site that pairs none, because its gateways cannot connect them to NATS. */
export function refuseMachines(server: FastifyInstance): void {
  const refuse = (): never => {
    throw new Fault("machines_unavailable", {
      message:
        "This site pairs no machines: its gateways have no TRUNKLINE_NATS_SIGNING_KEY, with which they connect machines to NATS. `trunkline nats init` makes one.",
    });
  };
  server.all(tunnelPath, refuse);
  server.all(`${tunnelPath}/*`, refuse);
}
