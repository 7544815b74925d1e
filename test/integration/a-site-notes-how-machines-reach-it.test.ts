import { createHash, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { describe, expect, onTestFinished, test } from "vitest";
import { noteSite } from "../../services/gateway/tunnels/pair-machines.ts";
import { FakeSite } from "../harness/fake-site.ts";
import { findBinary } from "../harness/find-binary.ts";
import { makeSelfSigned } from "../harness/self-signed.ts";

const gateway = "a gateway of a test";
const publicUrl = "https://models.example.org";

async function notedBy(site: { readonly origin: string }, means: Partial<Parameters<typeof noteSite>[0]>) {
  const noted: unknown[] = [];
  const machines = { noteSite: async (reached: unknown) => void noted.push(reached) };
  const here = new URL(`${site.origin}/v1`);
  await noteSite({
    machines,
    publicUrl,
    here,
    isShared: false,
    isProxied: false,
    takesMachines: true,
    gateway,
    ...means,
  });
  return noted;
}

test("a site without TLS is reached by its public URL, and without one from its own host alone", async () => {
  const site = { origin: "http://127.0.0.1:8484" };
  expect(await notedBy(site, {})).toEqual([{ publicUrl, gateway }]);
  expect(await notedBy(site, { publicUrl: undefined })).toEqual([{ publicUrl: site.origin, gateway }]);
});

test("a gateway that cannot connect machines to NATS notes that the site takes none", async () => {
  const noted = await notedBy({ origin: "http://127.0.0.1:8484" }, { takesMachines: false });
  expect(noted).toEqual([{ publicUrl, takesMachines: false, gateway }]);
});

test("a gateway without a public URL leaves what another gateway of its site noted", async () => {
  expect(await notedBy({ origin: "http://127.0.0.1:1" }, { publicUrl: undefined, isShared: true })).toEqual([]);
});

const openssl = await findBinary("openssl");
if (openssl === undefined) console.log("Skipping pins: there is no openssl on the PATH to make a certificate with.");

describe.skipIf(openssl === undefined)("with a certificate", () => {
  test("of no known authority its pin is noted, unless a proxy shows another one", async () => {
    const certificate = await makeSelfSigned("DNS:models.example.org");
    await using site = await FakeSite.start({ tls: certificate });
    const { raw } = new X509Certificate(readFileSync(certificate.TRUNKLINE_TLS_CERT));
    const certificateSha256 = createHash("sha256").update(raw).digest("base64url");
    expect(await notedBy(site, {})).toEqual([{ publicUrl, certificateSha256, gateway }]);
    expect(await notedBy(site, { isProxied: true })).toEqual([{ publicUrl, gateway }]);
  });

  test("of a known authority no pin is noted, unless the certificate is for other names", async () => {
    const certificate = await makeSelfSigned("DNS:models.example.org");
    const before = getCACertificates("default");
    onTestFinished(() => setDefaultCACertificates(before));
    setDefaultCACertificates([...before, readFileSync(certificate.TRUNKLINE_TLS_CERT, "utf8")]);
    await using site = await FakeSite.start({ tls: certificate });
    expect(await notedBy(site, {})).toEqual([{ publicUrl, gateway }]);
    expect(await notedBy(site, { publicUrl: "https://other.example.org" })).toEqual([
      { publicUrl: "https://other.example.org", certificateSha256: expect.stringMatching(/^[\w-]{43}$/), gateway },
    ]);
  });
});
