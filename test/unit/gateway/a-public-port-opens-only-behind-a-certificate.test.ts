import { expect, test } from "vitest";
import { ConfigFailure } from "#shared/process/config.ts";
import { gatewayConfig, unreachedUrl } from "../../../services/gateway/config.ts";
import { createServer } from "node:http";
import { listen } from "../../../services/gateway/http/listen.ts";

const url = { TRUNKLINE_PUBLIC_URL: "https://models.example.org" };
const certificate = { TRUNKLINE_TLS_CERT: "cert.pem", TRUNKLINE_TLS_KEY: "key.pem" };

function portOf(environment: Record<string, string>) {
  const { host, onlyProxies } = gatewayConfig(environment);
  return { host, onlyProxies };
}

test.each([
  ["without a public URL", {}, "127.0.0.1", false],
  ["without a public URL, where the host is chosen", { TRUNKLINE_HOST: "0.0.0.0" }, "0.0.0.0", false],
  ["with a public URL alone", url, "127.0.0.1", false],
  ["with a certificate", { ...url, ...certificate }, "0.0.0.0", false],
  [
    "with a certificate and a proxy",
    { ...url, ...certificate, TRUNKLINE_TRUSTED_PROXIES: "10.0.0.2" },
    "0.0.0.0",
    false,
  ],
  ["with a certificate and a chosen host", { ...url, ...certificate, TRUNKLINE_HOST: "::" }, "::", false],
  ["with a proxy on another host", { ...url, TRUNKLINE_TRUSTED_PROXIES: "10.0.0.0/8, 127.0.0.1" }, "0.0.0.0", true],
  ["with a proxy on this host", { ...url, TRUNKLINE_TRUSTED_PROXIES: "127.0.0.1,::1" }, "127.0.0.1", false],
  [
    "in a container with a proxy",
    { ...url, TRUNKLINE_HOST: "0.0.0.0", TRUNKLINE_TRUSTED_PROXIES: "127.0.0.1" },
    "0.0.0.0",
    true,
  ],
  ["with a public URL on this host", { TRUNKLINE_PUBLIC_URL: "http://127.0.0.1:8484" }, "127.0.0.1", false],
])("%s the port listens where it may", (_, environment, host, onlyProxies) => {
  expect(portOf(environment)).toEqual({ host, onlyProxies });
});

test("a port that other hosts would reach in clear text is refused, with its remedy", () => {
  const refused = () => gatewayConfig({ ...url, TRUNKLINE_HOST: "0.0.0.0" });
  expect(refused).toThrow(ConfigFailure);
  expect(refused).toThrow(/TRUNKLINE_HOST \(0\.0\.0\.0\).*TRUNKLINE_TLS_CERT.*TRUNKLINE_TRUSTED_PROXIES/);
});

test.each([
  "https://a.example/v1",
  "http://a.example",
  "https://u:p@a.example",
  "a.example",
  "https://a.example/?x",
  "ftp://a",
])("%s is no public URL", (text) => {
  expect(() => gatewayConfig({ TRUNKLINE_PUBLIC_URL: text })).toThrow(/TRUNKLINE_PUBLIC_URL must be https:/);
});

test("a public URL is kept without a last slash and without the usual port", () => {
  const given = { TRUNKLINE_PUBLIC_URL: "https://Models.example.org:443/" };
  expect(gatewayConfig(given).publicUrl).toBe("https://models.example.org");
});

test("a public URL that leads nowhere yet is told, with every way to mend it", () => {
  const publicUrl = url.TRUNKLINE_PUBLIC_URL;
  expect(unreachedUrl(publicUrl, { host: "127.0.0.1", port: 8484 })).toMatch(/127\.0\.0\.1:8484 only.*proxy.*CERT/);
  expect(unreachedUrl(publicUrl, { host: "0.0.0.0", port: 8484 })).toBeUndefined();
  expect(unreachedUrl("http://127.0.0.1:8484", { host: "127.0.0.1", port: 8484 })).toBeUndefined();
  expect(unreachedUrl(undefined, { host: "127.0.0.1", port: 8484 })).toBeUndefined();
});

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
