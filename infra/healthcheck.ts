/**
 * The health check that Docker runs repeatedly in a container. Exit code 0 means healthy.
 *
 * For a gateway the check requests `/healthz`, which reports whether it runs, not whether it is ready. While NATS or
 * Redis is away a restart does not help, and the proxy checks readiness itself. An agent opens no port and needs none:
 * its health is its presence, by which every gateway judges it each second. In this check an agent is healthy while its
 * process runs. Docker knows that anyway, so compose.yaml disables the check for agents.
 */
import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { readFileSync } from "node:fs";

const command = readFileSync("/proc/1/cmdline", "utf8").split("\0");
if (!command.includes("agent")) {
  const host = process.env["TRUNKLINE_OPERATIONS_HOST"] || "127.0.0.1";
  const port = process.env["TRUNKLINE_OPERATIONS_PORT"] || "8081";
  const isSecure = Boolean(process.env["TRUNKLINE_OPERATIONS_TLS_CERT"]);
  const url = `${isSecure ? "https" : "http"}://${host}:${port}/healthz`;
  try {
    // The certificate is not verified: nothing secret is sent, and the port belongs to this container.
    const options = { rejectUnauthorized: false, signal: AbortSignal.timeout(2_000) };
    const [response] = await once((isSecure ? https : http).get(url, options), "response");
    response.destroy();
    if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
  } catch (error) {
    process.stderr.write(`${url}: ${String(error)}\n`);
    process.exitCode = 1;
  }
}
