import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { startGatewayInProcess, type GatewayInProcess } from "./gateway-in-process.ts";
import type { Settings } from "./trunkline-command.ts";

/** Starts a server that answers like this until the test that runs ends, and returns its URL, without a slash at its end. */
export async function serverOfTest(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Starts a gateway whose machine fronts this model server, until the test that runs ends. */
export async function gatewayBefore(
  runtime: string,
  { url }: { readonly url: string },
  env: Settings = {},
): Promise<GatewayInProcess> {
  const fronting = { TRUNKLINE_RUNTIME: runtime, TRUNKLINE_RUNTIME_URL: url };
  const gateway = await startGatewayInProcess({ env: { ...fronting, ...env } });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return gateway;
}
