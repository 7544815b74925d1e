import type { FastifyInstance } from "fastify";
import { exitCodes, StartFailure } from "#shared/process/start-failure.ts";

/**
 * Length of the kernel's queue of connections that wait to be accepted; the same as the kernel's own limit. The kernel
 * silently drops a connection that finds the queue full. Its client tries again only after one second, then three, then
 * seven.
 */
const waitingConnectionsMax = 4_096;

/** Listens and returns the port. Throws a `StartFailure` that names the cause and the remedy in one line. */
export async function listen(
  server: FastifyInstance,
  at: { readonly host: string; readonly port: number; readonly hostVariable: string; readonly portVariable: string },
): Promise<number> {
  try {
    await server.listen({ host: at.host, port: at.port, backlog: waitingConnectionsMax });
  } catch (error) {
    throw new StartFailure(exitCodes.unavailable, reasonOf(error, at), { cause: error });
  }
  const address = server.server.address();
  return typeof address === "object" && address !== null ? address.port : at.port;
}

function reasonOf(error: unknown, at: Parameters<typeof listen>[1]): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const where = `Port ${at.port} on ${at.host}`;
  switch (code) {
    case "EADDRINUSE":
      return `${where} is in use: stop what uses it, or set ${at.portVariable} to another port.`;
    case "EACCES":
      return `${where} is not for this user: set ${at.portVariable} to a port above 1023.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `${at.host} is no address of this host: set ${at.hostVariable} to one that is.`;
    default:
      return `${where} cannot be used (${String(code ?? error)}): set ${at.hostVariable} and ${at.portVariable}.`;
  }
}
