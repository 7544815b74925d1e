import { on } from "node:events";
import { WebSocket } from "ws";
import { exitCodes, StartFailure } from "../process/lifecycle.ts";
import { refusalIn, signChallenge, tunnelPath } from "../protocol/pairing.ts";
import type { Site } from "../site/reach-site.ts";
import { boot, refusedFor, socketOptions, whyNoTunnel } from "./nats-tunnel.ts";

/** A gateway as it greets a machine. */
export interface Greeting {
  readonly site: string;
  /** The machine's name at its site, if its credential was tried. */
  readonly machine?: string;
  /** The gateway's version, which a proven machine is told. */
  readonly version?: string;
  /** The reason for which the machine gets no jobs, if an operator or the site ordered that. */
  readonly cordon?: string | undefined;
}

/**
 * Opens a tunnel as far as it takes to know that it would work, and closes it. It takes no machine's place: the gateway
 * proves the credential and opens no broker. Without a credential it reads the greeting only.
 */
export async function checkTunnel(
  way: Site,
  options: {
    readonly credential?: { readonly site: string; readonly publicKey: string; readonly seed: string } | undefined;
    readonly signal: AbortSignal;
  },
): Promise<Greeting> {
  const { credential, signal } = options;
  const socket = new WebSocket(new URL(tunnelPath, way.origin.replace(/^http/, "ws")), {
    ...socketOptions,
    agent: way.agent,
  });
  try {
    for await (const [message] of on(socket, "message", { signal, close: ["close"] })) {
      for (const line of String(message).split("\r\n")) {
        if (line.startsWith("-ERR ")) throw refusedFor(refusalIn(line.slice("-ERR '".length, -1)), way.origin);
        const info = line.startsWith("INFO ") ? (JSON.parse(line.slice("INFO ".length)) as Info) : undefined;
        if (info === undefined) continue;
        if (credential === undefined) return { site: info.site };
        const { machine, trunkline: version, cordon } = info;
        if (machine !== undefined) return { site: info.site, machine, version, cordon };
        const { publicKey: nkey, seed, site } = credential;
        const sig = signChallenge(seed, { purpose: "connect", site, challenge: info.nonce });
        socket.send(Buffer.from(`CONNECT ${JSON.stringify({ nkey, sig, boot, check: true })}\r\n`));
      }
    }
    throw new StartFailure(exitCodes.unavailable, `${way.origin} closed the tunnel without a greeting: try again.`);
  } catch (error) {
    throw error instanceof StartFailure ? error : whyNoTunnel(error, way);
  } finally {
    socket.terminate();
  }
}

interface Info {
  readonly site: string;
  readonly nonce: string;
  readonly machine?: string;
  readonly trunkline: string;
  readonly cordon?: string;
}
