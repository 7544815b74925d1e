import { createHash, X509Certificate } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "#shared/process/clock.ts";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { parseJoinLine } from "#shared/protocol/pairing.ts";
import { pairingFile, readPairing } from "#shared/site/pairing-file.ts";
import { joinSite } from "../../services/agent/machine/join-site.ts";
import { startCompanyProxy } from "../harness/company-proxy.ts";
import { FakeSite } from "../harness/fake-site.ts";
import { findBinary } from "../harness/find-binary.ts";
import { type CertificateSettings, makeSelfSigned } from "../harness/self-signed.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { trunkline } from "../harness/trunkline-command.ts";

const hurry = 100;
/** A minute of retries takes less than a second. */
const clock: Clock = {
  now: () => systemClock.now() * hurry,
  wall: () => systemClock.wall(),
  after: (delayMs, run) => systemClock.after(delayMs / hurry, run),
  every: (intervalMs, run) => systemClock.every(intervalMs / hurry, run),
};

let stateDir: string;
let said: string[];
beforeEach(() => {
  stateDir = join(folderOfTest(), "state");
  said = [];
});

function joinBy(
  text: string,
  { replace = false, environment = {} }: { replace?: boolean; environment?: Environment } = {},
) {
  const line = parseJoinLine(text);
  if (line === undefined) throw new Error(`no join line: ${text}`);
  return joinSite(line, { stateDir, replace, environment, clock, say: (each) => void said.push(each) });
}

async function refusalOf(work: Promise<unknown>): Promise<StartFailure> {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (thrown instanceof StartFailure) return thrown;
  throw new Error(`this is no refusal: ${String(thrown)}`, { cause: thrown });
}

test("a machine that joins keeps its key in a file of its owner, says where, and tells the secret to nobody", async () => {
  await using site = await FakeSite.start();
  const line = site.joinLine();
  const paired = await joinBy(line);
  expect(readPairing(stateDir)).toEqual(paired);
  expect(paired).toMatchObject({ origin: site.origin, site: site.id, machine: "attic" });
  expect(site.requests.map((request) => request.public_key)).toEqual([paired.publicKey]);
  expect(said).toEqual([`This machine is now 'attic' of ${site.origin}; its key is in ${pairingFile(stateDir)}.`]);
  if (process.platform !== "win32") expect(statSync(pairingFile(stateDir)).mode & 0o777).toBe(0o600);
  const [, secret = ""] = line.split(".").slice(-2);
  for (const told of [
    ...said,
    JSON.stringify(site.requests),
    ...readdirSync(stateDir).map((each) => readFileSync(join(stateDir, each), "utf8")),
  ]) {
    expect(told).not.toContain(secret);
  }
});

test("a join line that this machine has joined by is not sent again", async () => {
  await using site = await FakeSite.start();
  const line = site.joinLine();
  const paired = await joinBy(line);
  expect(await joinBy(line)).toEqual(paired);
  expect(site.requests).toHaveLength(1);
});

test("an answer that is lost is asked for again with the same key, also by a process that starts anew", async () => {
  await using site = await FakeSite.start();
  const line = site.joinLine();
  site.answersLost = 1_000;
  const failure = await refusalOf(joinBy(line));
  expect(failure.exitCode).toBe(exitCodes.unavailable);
  expect(existsSync(pairingFile(stateDir))).toBe(false);
  expect(said.length).toBeGreaterThan(3);
  expect(said[0]).toMatch(/^http:\/\/127.* cannot be reached \(ECONNRESET\): .*Trying again for \d\d s\.$/);
  site.answersLost = 2;
  const { publicKey } = await joinBy(line);
  expect(new Set(site.requests.map((request) => request.public_key))).toEqual(new Set([publicKey]));
  expect(new Set(site.requests.map(({ challenge }) => challenge)).size).toBe(site.requests.length);
});

test("each join line has a key of its own", async () => {
  await using site = await FakeSite.start();
  const keys = [await joinBy(site.joinLine()), await joinBy(site.joinLine())].map(({ publicKey }) => publicKey);
  expect(new Set(keys).size).toBe(2);
});

test("a site that is busy is asked again, and one that refuses is not", async () => {
  await using site = await FakeSite.start();
  site.refusal = { times: 3, as: { status: 503, code: "auth_unavailable", message: "The store is away." } };
  await joinBy(site.joinLine());
  expect(said.slice(0, 3).map((each) => each.replace(/\d+/, "N"))).toEqual(
    Array.from({ length: 3 }, () => "The store is away. Trying again for N s."),
  );
  const before = site.paths.length;
  site.refusal = { times: 1, as: { status: 403, code: "join_used", message: "This line was used\n\u001B[31mbefore." } };
  const failure = await refusalOf(joinBy(site.joinLine()));
  expect([failure.exitCode, failure.message]).toEqual([exitCodes.config, "This line was used [31mbefore."]);
  expect(site.paths.length - before).toBe(1);
});

test("a machine leaves its site for another one only where a person says so", async () => {
  await using first = await FakeSite.start();
  await using other = await FakeSite.start();
  const before = await joinBy(first.joinLine());
  const failure = await refusalOf(joinBy(other.joinLine()));
  expect(failure.message).toMatch(/is 'attic' of .*--replace/);
  expect([readPairing(stateDir), other.requests]).toEqual([before, []]);
  expect(await joinBy(other.joinLine(), { replace: true })).toMatchObject({ site: other.id });
  expect(readPairing(stateDir)?.site).toBe(other.id);
  expect(said.at(-1)).toBe(`${first.origin} still knows it: "trunkline machines revoke attic" there ends that.`);
});

test("a site that does not know the secret of its line is not believed", async () => {
  await using site = await FakeSite.start();
  site.isImpostor = true;
  expect((await refusalOf(joinBy(site.joinLine()))).message).toMatch(/does not prove that it made this join line/);
  expect(readPairing(stateDir)).toBeUndefined();
});

test("a redirection is told and not followed, and so is a server that is no site", async () => {
  await using site = await FakeSite.start();
  site.redirectsTo = "https://elsewhere.example/agent/v1/challenge";
  expect((await refusalOf(joinBy(site.joinLine()))).message).toContain("redirects to https://elsewhere.example,");
  site.redirectsTo = undefined;
  site.refusal = { times: 1, as: { status: 404, code: "unknown_url", message: "Unknown request URL." } };
  expect((await refusalOf(joinBy(site.joinLine()))).message).toMatch(/does not answer as a Trunkline site.*404/);
});

const openssl = await findBinary("openssl");
if (openssl === undefined) console.log("Skipping certificates: there is no openssl on the PATH to make one with.");

describe.skipIf(openssl === undefined)("over TLS", () => {
  let certificate: CertificateSettings;
  let pin: string;
  beforeAll(async () => {
    certificate = await makeSelfSigned("DNS:another-name.example");
    const { raw } = new X509Certificate(readFileSync(certificate.TRUNKLINE_TLS_CERT));
    pin = createHash("sha256").update(raw).digest("base64url");
  });

  test("a certificate of no known authority is refused, whatever Node's environment says", async () => {
    await using site = await FakeSite.start({ tls: certificate });
    process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    try {
      const failure = await refusalOf(joinBy(site.joinLine()));
      expect(failure.message).toMatch(/unknown authority \(DEPTH_ZERO_SELF_SIGNED_CERT\).*NODE_EXTRA_CA_CERTS/);
    } finally {
      delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    }
    expect(site.paths).toEqual([]);
  });

  test("a line for a site with a certificate of no known authority is printed with the remedy", async () => {
    await using site = await FakeSite.start({ tls: certificate });
    const settings = { TRUNKLINE_STATE_DIR: stateDir, TRUNKLINE_PUBLIC_URL: site.origin };
    await trunkline(["keys", "issue", "--name", "first"], settings);
    const { stdout, stderr } = await trunkline(["machines", "pair", "attic"], settings);
    expect(stdout).toContain(`echo "${site.origin}/#`);
    expect(stderr).toContain("export NODE_EXTRA_CA_CERTS=");
  });

  test("a certificate that the line pins is trusted, and kept", async () => {
    await using site = await FakeSite.start({ tls: certificate });
    const paired = await joinBy(site.joinLine({ certificateSha256: pin }));
    expect(new X509Certificate(paired.certificate ?? "").raw).toEqual(
      new X509Certificate(readFileSync(certificate.TRUNKLINE_TLS_CERT)).raw,
    );
  });

  test("another certificate than the pinned one is refused before a proof is sent", async () => {
    await using site = await FakeSite.start({ tls: await makeSelfSigned() });
    const failure = await refusalOf(joinBy(site.joinLine({ certificateSha256: pin })));
    expect(failure.message).toContain("another certificate than the join line names");
    expect(site.requests).toEqual([]);
  });

  test("a site that changes its certificate after the first look gets no proof either", async () => {
    await using site = await FakeSite.start({ tls: certificate });
    const line = site.joinLine({ certificateSha256: pin });
    site.answersLost = 1_000;
    await refusalOf(joinBy(line));
    const asked = site.requests.length;
    site.showCertificate(await makeSelfSigned());
    const failure = await refusalOf(joinBy(line));
    expect(failure.message).toContain("another certificate than the pinned one");
    expect(site.requests).toHaveLength(asked);
  });

  test("the proxy of the environment is used, and NO_PROXY goes around it", async () => {
    await using site = await FakeSite.start({ tls: certificate });
    await using proxy = await startCompanyProxy();
    const line = () => site.joinLine({ certificateSha256: pin });
    await joinBy(line(), { environment: { HTTPS_PROXY: proxy.url } });
    expect(proxy.hosts.length).toBeGreaterThan(0);
    expect(new Set(proxy.hosts)).toEqual(new Set([new URL(site.origin).host]));
    const before = proxy.hosts.length;
    await joinBy(line(), { environment: { HTTPS_PROXY: proxy.url, NO_PROXY: "127.0.0.1" } });
    expect(proxy.hosts).toHaveLength(before);
    proxy.refuses = true;
    const failure = await refusalOf(joinBy(line(), { environment: { https_proxy: proxy.url } }));
    expect(failure.message).toMatch(/proxy of HTTPS_PROXY does not pass .* on \(HTTP 407\)/);
  });
});
