import { readFileSync } from "node:fs";
import { setImmediate } from "node:timers/promises";
import { createSecureContext } from "node:tls";
import type { FastifyInstance } from "fastify";
import type { Clock } from "#shared/process/clock.ts";
import { defaultPorts } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";

export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * Reads the certificate for HTTPS and its key; returns undefined when neither is configured. Throws a `StartFailure`
 * for files that do not work. The settings are `prefix` with `CERT` and with `KEY`.
 */
export function readCertificate(
  prefix: "TRUNKLINE_TLS_" | "TRUNKLINE_OPERATIONS_TLS_",
  {
    tlsCert: certFile,
    tlsKey: keyFile,
  }: { readonly tlsCert?: string | undefined; readonly tlsKey?: string | undefined },
): Certificate | undefined {
  if (certFile === undefined && keyFile === undefined) return undefined;
  const [certVariable, keyVariable] = [`${prefix}CERT`, `${prefix}KEY`];
  if (certFile === undefined || keyFile === undefined) {
    throw new StartFailure(exitCodes.config, `Set ${certVariable} and ${keyVariable} both, or neither.`);
  }
  const certificate = { cert: readPem(certVariable, certFile), key: readPem(keyVariable, keyFile) };
  try {
    createSecureContext(certificate);
  } catch (error) {
    const message = `${certVariable} and ${keyVariable}: ${certFile} and ${keyFile} are not a certificate and its key in PEM form.`;
    throw new StartFailure(exitCodes.config, message, { cause: error });
  }
  return certificate;
}

function readPem(variable: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const message = `${variable}: the file ${file} cannot be read; name one that this user may read.`;
    throw new StartFailure(exitCodes.config, message, { cause: error });
  }
}

/**
 * Length of the kernel's queue of connections that wait to be accepted; the same as the kernel's own limit. The kernel
 * silently drops a connection that finds the queue full. Its client tries again only after one second, then three, then
 * seven.
 */
const waitingConnectionsMax = 4_096;

/**
 * Listens and returns the port. Throws a `StartFailure` that names the cause and the remedy in one line. The settings
 * are `prefix` with `HOST` and with `PORT`.
 */
export async function listen(
  server: Pick<FastifyInstance, "listen" | "server">,
  at: { readonly host: string; readonly port: number; readonly prefix: "TRUNKLINE_" | "TRUNKLINE_OPERATIONS_" },
): Promise<number> {
  try {
    await server.listen({ host: at.host, port: at.port, backlog: waitingConnectionsMax });
  } catch (error) {
    throw new StartFailure(exitCodes.unavailable, whyNotListening(error, at), { cause: error });
  }
  const address = server.server.address();
  return typeof address === "object" && address !== null ? address.port : at.port;
}

/** The servers that usually listen on a port, to name when that port is in use. */
const usualServers: Readonly<Record<number, string>> = {
  [defaultPorts.public]: "another Trunkline",
  [defaultPorts.operations]: "another Trunkline",
  1234: "LM Studio",
  3000: "Open WebUI",
  4000: "LiteLLM",
  5000: "AirPlay of macOS",
  8000: "vLLM",
  8080: "llama-server or mlx-lm",
  9090: "Prometheus",
  11434: "Ollama",
};

function whyNotListening(error: unknown, at: Parameters<typeof listen>[1]): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  const where = `Port ${at.port} on ${at.host}`;
  const [hostVariable, portVariable] = [`${at.prefix}HOST`, `${at.prefix}PORT`];
  const usual = usualServers[at.port];
  switch (code) {
    case "EADDRINUSE":
      return `${where} is in use${usual === undefined ? "" : ` (${usual} usually listens there)`}: stop what uses it, or set ${portVariable} to another port.`;
    case "EACCES":
      // Windows refuses ports that it has reserved for its own parts.
      return at.port < 1_024
        ? `${where} is not for this user: set ${portVariable} to a port above 1023.`
        : `${where} is reserved by the system: set ${portVariable} to another port.`;
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return `${at.host} is no address of this host: set ${hostVariable} to one that is.`;
    default:
      return `${where} cannot be used (${String(code ?? error)}): set ${hostVariable} and ${portVariable}.`;
  }
}

/** Interval at which idle connections are closed. */
const lookEveryMs = 50;
/** Time for answers that were cut at the deadline to reach their clients. */
const lastWordsMs = 250;

/** Connections that became WebSockets, which Node no longer closes. */
interface WebSockets {
  readonly connections: number;
  close(): void;
}

/**
 * Closes a server. Accepts no new connections, closes idle ones at once, and the others when their answer is sent. A
 * client that keeps its connection, or does not read, delays nothing past the deadline. WebSockets close last, because
 * answers may need them.
 */
export async function closeServer(
  server: FastifyInstance,
  dependencies: { readonly deadline: AbortSignal; readonly clock: Clock; readonly webSockets?: WebSockets | undefined },
): Promise<void> {
  const { deadline, clock, webSockets } = dependencies;
  const looking = clock.every(lookEveryMs, () => {
    server.server.closeIdleConnections();
    server.server.getConnections((_, count) => {
      if (webSockets !== undefined && count <= webSockets.connections) webSockets.close();
    });
  });
  const cut = (): void => {
    webSockets?.close();
    clock.after(lastWordsMs, () => server.server.closeAllConnections());
  };
  if (deadline.aborted) cut();
  deadline.addEventListener("abort", cut, { once: true });
  try {
    await server.close();
    // Node reports a server as closed before its last connection emits `close`, and the request must still see that.
    // The event comes at the end of this turn of the event loop. A callback that is set in the next turn comes after
    // it.
    await setImmediate();
    await setImmediate();
  } finally {
    looking.cancel();
    webSockets?.close();
  }
}
