import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { promisify } from "node:util";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { exitCodes } from "#shared/process/lifecycle.ts";
import { findBinary } from "../harness/find-binary.ts";
import { infraFolder } from "../harness/infra/compose-file.ts";
import { type CertificateSettings, makeSelfSigned } from "../harness/self-signed.ts";
import { demonstration, startUp } from "../harness/start-trunkline.ts";
import { trunkline, type Settings } from "../harness/trunkline-command.ts";

const free = { TRUNKLINE_PORT: "0", TRUNKLINE_OPERATIONS_PORT: "0", ...demonstration };
const openssl = await findBinary("openssl");
if (openssl === undefined) console.log("Skipping HTTPS: there is no openssl on the PATH to make a certificate with.");

describe.skipIf(openssl === undefined)("with a certificate and its key", () => {
  let settings: CertificateSettings;
  beforeAll(async () => void (settings = await makeSelfSigned()));

  test("the gateway speaks HTTPS, to clients that check it, streams too", async () => {
    await using up = await startUp(settings);
    const { endpoint } = up;
    expect(endpoint.baseUrl).toMatch(/^https:/);
    await expect(endpoint.models()).rejects.toThrow();
    const before = getCACertificates("default");
    onTestFinished(() => setDefaultCACertificates(before));
    setDefaultCACertificates([...before, await readFile(settings.TRUNKLINE_TLS_CERT, "utf8")]);
    expect((await endpoint.models()).ids).toContain("scripted");
    const stream = await endpoint.stream({ model: "scripted", says: "/script tokens=2" });
    await stream.over;
    expect([stream.text, stream.done]).toEqual(["token-0 token-1 ", true]);
    expect(await up.terminate()).toBe(0);
  });

  test("the operations port speaks HTTPS alone, to the command line and to a container's health check too", async () => {
    const files = {
      TRUNKLINE_OPERATIONS_TLS_CERT: settings.TRUNKLINE_TLS_CERT,
      TRUNKLINE_OPERATIONS_TLS_KEY: settings.TRUNKLINE_TLS_KEY,
    };
    await using up = await startUp(files);
    expect([new URL(up.endpoint.baseUrl).protocol, new URL(up.operationsUrl).protocol]).toEqual(["http:", "https:"]);
    await expect(fetch(up.operationsUrl.replace("https:", "http:"))).rejects.toThrow();
    const { port } = new URL(up.operationsUrl);
    const here = { TRUNKLINE_STATE_DIR: up.stateDir, TRUNKLINE_OPERATIONS_PORT: port };
    const told = await trunkline(["models", "list"], { ...here, ...files });
    expect([told.exitCode, told.stdout]).toEqual([0, expect.stringContaining("scripted")]);
    const named = { ...here, TRUNKLINE_OPERATIONS_URL: `https://localhost:${port}` };
    const unchecked = await trunkline(["models", "list"], named);
    expect([unchecked.exitCode, unchecked.stderr]).toEqual([exitCodes.unavailable, expect.stringContaining("CERT")]);
    const ca = { TRUNKLINE_OPERATIONS_CA: settings.TRUNKLINE_TLS_CERT };
    expect((await trunkline(["models", "list"], { ...named, ...ca })).exitCode).toBe(0);
    const env = { ...here, ...files };
    await promisify(execFile)(process.execPath, [join(infraFolder, "healthcheck.ts")], { env });
  });

  test("a command names the gateway's own problems also where a private authority signed its certificate", async () => {
    const [cert, key] = await Promise.all([
      readFile(settings.TRUNKLINE_TLS_CERT),
      readFile(settings.TRUNKLINE_TLS_KEY),
    ]);
    const error = { message: "Keys cannot be checked.", type: "api_error", param: null, code: "auth_unavailable" };
    await using server = createServer({ cert, key }, ({ url }, response) => {
      const answer = url === "/readyz" ? { ready: false, reasons: ["Redis does not answer"] } : { error };
      response.writeHead(503, { "content-type": "application/json" }).end(JSON.stringify(answer));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { stderr } = await trunkline(["models", "list"], {
      TRUNKLINE_OPERATIONS_URL: `https://localhost:${(server.address() as AddressInfo).port}`,
      TRUNKLINE_OPERATIONS_CA: settings.TRUNKLINE_TLS_CERT,
      TRUNKLINE_ADMIN_KEY: mintKeyToken("admin").reveal(),
    });
    expect(stderr).toContain("The gateway says: Redis does not answer.");
  });

  test.each<[what: string, given: () => Settings, told: RegExp]>([
    [
      "a certificate of the operations port without its key",
      () => ({ TRUNKLINE_OPERATIONS_TLS_CERT: settings.TRUNKLINE_TLS_CERT }),
      /TRUNKLINE_OPERATIONS_TLS_CERT and TRUNKLINE_OPERATIONS_TLS_KEY both/,
    ],
    [
      "a certificate without its key",
      () => ({ TRUNKLINE_TLS_CERT: settings.TRUNKLINE_TLS_CERT }),
      /TRUNKLINE_TLS_CERT and TRUNKLINE_TLS_KEY both/,
    ],
    [
      "a file of a certificate that is not there",
      () => ({ ...settings, TRUNKLINE_TLS_KEY: "none.pem" }),
      /TRUNKLINE_TLS_KEY.*none\.pem/,
    ],
    [
      "a certificate in place of its key",
      () => ({ TRUNKLINE_TLS_CERT: settings.TRUNKLINE_TLS_KEY, TRUNKLINE_TLS_KEY: settings.TRUNKLINE_TLS_CERT }),
      /TRUNKLINE_TLS_/,
    ],
  ])("%s is told at the start", async (_what, given, told) => {
    const { exitCode, stderr } = await trunkline(["up"], { ...free, ...given() });
    expect([exitCodes.config, exitCodes.unavailable]).toContain(exitCode);
    expect(stderr).toMatch(/^trunkline: .*\n$/);
    expect(stderr).toMatch(told);
  });
});
