import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below every system's range for outgoing connections. A port from that range is a trap for a server that is restarted
 * on the same port: while it is down, a client's reconnect to loopback can be given that very port as its own and
 * connect to itself.
 */
const lowestPort = 10_000;
const highestPort = 32_000;
const attemptsMax = 50;

/** A loopback port that nobody listens on now. Somebody else may take it first, so a caller tries again when told so. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const port = randomInt(lowestPort, highestPort);
    if (await canListen(port)) return port;
  }
  throw new Error(`No free port from ${lowestPort} to ${highestPort} in ${attemptsMax} attempts`);
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}
