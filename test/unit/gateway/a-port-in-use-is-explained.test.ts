import { createServer } from "node:http";
import { expect, test } from "vitest";
import { listen } from "../../../services/gateway/http/listen.ts";

async function refusal(port: number, code = "EADDRINUSE"): Promise<string> {
  const fails = async (): Promise<never> => {
    throw Object.assign(new Error(`listen ${code}`), { code });
  };
  const at = { host: "127.0.0.1", port, prefix: "TRUNKLINE_" as const };
  return listen({ server: createServer(), listen: fails }, at).then(String, String);
}

test("a port in use is refused with a message that names the server that usually listens there and the setting", async () => {
  expect(await refusal(8080)).toBe(
    "StartFailure: Port 8080 on 127.0.0.1 is in use (llama-server or mlx-lm usually listens there): " +
      "stop what uses it, or set TRUNKLINE_PORT to another port.",
  );
  expect(await refusal(8484)).toContain("(another Trunkline usually listens there)");
});

test("a port in use is refused with a message that names no server for any other port", async () => {
  expect(await refusal(9123)).toBe(
    "StartFailure: Port 9123 on 127.0.0.1 is in use: stop what uses it, or set TRUNKLINE_PORT to another port.",
  );
});

test("a port that the system does not give is refused with the ports that it would give", async () => {
  expect(await refusal(80, "EACCES")).toContain("is not for this user: set TRUNKLINE_PORT to a port above 1023.");
  expect(await refusal(50_000, "EACCES")).toContain("is reserved by the system: set TRUNKLINE_PORT to another port.");
});
