import { join } from "node:path";
import { expect, test } from "vitest";
import { z } from "zod";
import { streamsPerNetworkMax } from "../../services/gateway/tunnels/routes-before-pairing.ts";
import { keyId } from "#shared/keys/key-token.ts";
import { systemClock } from "#shared/process/clock.ts";
import { issueKey } from "#shared/records/issue-key.ts";
import { openKeyStore } from "#shared/store/open-key-store.ts";
import { streamProbePath } from "#shared/protocol/pairing.ts";
import { FakeOtherServer } from "../harness/fake-other-server.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";
import { type Settings, trunkline } from "../harness/trunkline-command.ts";
import { until } from "../harness/until.ts";

const folder = folderOfTests();

const report = z.strictObject({
  side: z.enum(["machine", "site"]),
  ok: z.boolean(),
  checks: z.array(
    z.strictObject({
      name: z.string(),
      outcome: z.enum(["ok", "skipped", "warning", "failed"]),
      finding: z.string(),
      remedy: z.string().nullable(),
    }),
  ),
});

test("doctor ends with 1 when a check failed, and tells programs each finding with its remedy", async () => {
  const settings = { TRUNKLINE_STATE_DIR: folder, TRUNKLINE_RUNTIME: "scripted" };
  const { exitCode, stdout, stderr } = await trunkline(["doctor", "--json"], settings);
  const { side, ok, checks } = report.parse(JSON.parse(stdout));
  expect([exitCode, side, ok]).toEqual([1, "machine", false]);
  expect(checks.filter(({ outcome }) => outcome === "failed").map(({ name }) => name)).toEqual(["pairing"]);
  for (const { outcome, remedy } of checks) {
    expect(remedy !== null).toBe(outcome === "failed" || outcome === "warning");
  }
  expect(stderr).toBe("trunkline: 1 of 6 checks failed: follow the remedies above.\n");
});

test("doctor and status tell that the slots of a server are a guess, and by which setting they are set", async () => {
  await using server = await FakeOtherServer.start();
  const settings = { TRUNKLINE_RUNTIME: "openai", TRUNKLINE_RUNTIME_URL: server.url };
  const doctor = async (more: Settings): Promise<string> => {
    const state = join(folder, "guess");
    return (await trunkline(["doctor", "machine"], { ...settings, TRUNKLINE_STATE_DIR: state, ...more })).stdout;
  };
  expect(await doctor({})).toMatch(/model servers +warning .*at once is a guess.*TRUNKLINE_SLOTS/);
  expect(await doctor({ TRUNKLINE_SLOTS: "8" })).toMatch(/model servers +ok /);
  await using gateway = await startGatewayInProcess({ env: settings });
  const { key } = (await gateway.issue({ kind: "viewer" })).endpoint;
  const status = await trunkline(["status"], {
    TRUNKLINE_ADMIN_KEY: key,
    TRUNKLINE_OPERATIONS_URL: gateway.operationsUrl,
  });
  expect(status.stdout).toMatch(/\b0\/4 .*its slots are a guess.*TRUNKLINE_SLOTS/);
});

test("doctor ends with 0 when nothing failed, and changes nothing", async () => {
  const settings = { TRUNKLINE_STATE_DIR: join(folder, "site"), TRUNKLINE_PORT: "9" };
  const { exitCode, stdout, stderr } = await trunkline(["doctor", "site"], settings);
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^check +outcome +finding +remedy\nsettings +ok +Trunkline /);
  expect(stdout).toMatch(/^store +skipped +There is no store yet/m);
  expect(exitCode).toBe(0);
});

test("doctor and the lists of the command line name the records that a newer version wrote", async () => {
  const stateDir = join(folder, "newer");
  const settings = { TRUNKLINE_STATE_DIR: stateDir };
  const store = await openKeyStore({ stateDir }, { clock: systemClock });
  const key = { name: "alice", scopes: ["*"], ttlMs: 60_000 };
  const { record } = await issueKey(key, { ...store, actor: { by: "the operator" } });
  const newer = { ...record, id: keyId.parse("zzzzzzzzzzzz"), name: "bob", onlyOnSundays: true };
  await store.keys.issue(newer, { at: 1, by: "a newer version", action: "issued", key: newer.id, name: "bob" });
  await store.keys.close();
  const doctor = await trunkline(["doctor", "site"], settings);
  expect(doctor.stdout).toMatch(/^records +warning .*cannot read key zzzzzzzzzzzz/m);
  const list = await trunkline(["keys", "list"], settings);
  expect(list.stdout).toContain("alice");
  expect(list.stderr).toMatch(/cannot read, left out: 1\. `trunkline doctor site`/);
});

test("a network has a bounded number of streams at once, and gets new ones when those have ended", async () => {
  await using gateway = await startGatewayInProcess();
  const url = new URL(streamProbePath, gateway.baseUrl);
  const statuses = await Promise.all(
    Array.from({ length: streamsPerNetworkMax + 1 }, async () => {
      const response = await fetch(url);
      return { status: response.status, text: await response.text() };
    }),
  );
  const refused = statuses.filter(({ status }) => status === 503);
  expect(refused).toHaveLength(1);
  expect(refused[0]?.text).toContain("streamsPerNetworkMax");
  expect(statuses.filter(({ text }) => text.includes('{"event":4,"of":4}'))).toHaveLength(streamsPerNetworkMax);
  await until(async () => (await fetch(url)).status === 200, { what: "another stream" });
});
