import { createServer } from "node:http";
import { expect, test } from "vitest";
import { listen } from "../../../services/gateway/http/listen.ts";

async function refusal(port: number, code: string): Promise<string> {
  const fails = async (): Promise<never> => {
    throw Object.assign(new Error(`listen ${code}`), { code });
  };
  const at = { host: "127.0.0.1", port, prefix: "TRUNKLINE_" as const };
  return listen({ server: createServer(), listen: fails }, at).then(String, String);
}

const inUse = "on 127.0.0.1 is in use";
test.each([
  [
    8080,
    "EADDRINUSE",
    `StartFailure: Port 8080 ${inUse} (llama-server or mlx-lm usually listens there): stop what uses it`,
  ],
  [8484, "EADDRINUSE", "(another Trunkline usually listens there)"],
  [9123, "EADDRINUSE", `Port 9123 ${inUse}: stop what uses it, or set TRUNKLINE_PORT to another port.`],
  [80, "EACCES", "is not for this user: set TRUNKLINE_PORT to a port above 1023."],
  [50_000, "EACCES", "is reserved by the system: set TRUNKLINE_PORT to another port."],
])("the port %d that fails with %s is refused with a message that says what to do", async (port, code, message) => {
  expect(await refusal(port, code)).toContain(message);
});
