/**
 * What Docker asks of a container again and again: exit code 0 is healthy.
 *
 * A gateway is asked by HTTP whether it runs, and not whether it is ready: while NATS or Redis is away a restart helps
 * nothing, and the proxy looks at readiness for itself. An agent opens no port and needs none: its health is its
 * presence, by which every gateway judges it each second. Here it is healthy for as long as its process runs, which is
 * no more than Docker knows anyway; compose.yaml switches the check off for it.
 */
import { readFileSync } from "node:fs";

const command = readFileSync("/proc/1/cmdline", "utf8").split("\0");
if (!command.includes("agent")) {
  const host = process.env["TRUNKLINE_OPERATIONS_HOST"] || "127.0.0.1";
  const port = process.env["TRUNKLINE_OPERATIONS_PORT"] || "8081";
  const url = `http://${host}:${port}/healthz`;
  try {
    const { status } = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    if (status !== 200) throw new Error(`status ${status}`);
  } catch (error) {
    process.stderr.write(`${url}: ${String(error)}\n`);
    process.exitCode = 1;
  }
}
