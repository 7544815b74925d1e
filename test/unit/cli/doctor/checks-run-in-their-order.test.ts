import { expect, test } from "vitest";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { isBelow } from "../../../../services/cli/doctor/host-checks.ts";
import { type Check, checkMsMax, failed, ok, runChecks, warning } from "../../../../services/cli/doctor/run-checks.ts";
import { judgeProxies } from "../../../../services/cli/doctor/site-checks.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";
import { until } from "../../../harness/until.ts";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sideOf } from "../../../../services/cli/doctor/doctor.ts";
import { folderOfTest } from "../../../harness/temporary-folder.ts";

const run = (checks: readonly Check[], clock = new TurnableClock()) =>
  runChecks(checks, { clock, onDone: () => undefined });

test("a check whose need failed or was skipped is skipped, and one whose need warned is not", async () => {
  const results = await run([
    { name: "late", needs: ["bad"], look: async () => ok("looked") },
    { name: "later", needs: ["late"], look: async () => ok("looked") },
    { name: "bad", look: async () => failed("It is bad.", "Mend it.") },
    { name: "odd", look: async () => warning("It is odd.", "See to it.") },
    { name: "next", needs: ["odd"], look: async () => ok("looked") },
  ]);
  expect(results.map(({ name, outcome, finding }) => [name, outcome, finding])).toEqual([
    ["late", "skipped", "needs the check «bad»"],
    ["later", "skipped", "needs the check «late»"],
    ["bad", "failed", "It is bad."],
    ["odd", "warning", "It is odd."],
    ["next", "ok", "looked"],
  ]);
});

test("checks that need nothing of each other run at once", async () => {
  const both = Promise.withResolvers<void>();
  let begun = 0;
  const look = async () => {
    begun += 1;
    if (begun === 2) both.resolve();
    await both.promise;
    return ok("looked");
  };
  expect(
    await run([
      { name: "one", look },
      { name: "other", look },
    ]),
  ).toHaveLength(2);
});

test("a message for people becomes a finding and its remedy", async () => {
  const look = async () => {
    throw new StartFailure(
      exitCodes.unavailable,
      "https://models.example.org cannot be reached (ECONNREFUSED): check the address.",
    );
  };
  expect(await run([{ name: "site", look }])).toEqual([
    {
      name: "site",
      outcome: "failed",
      finding: "https://models.example.org cannot be reached (ECONNREFUSED).",
      remedy: "Check the address.",
    },
  ]);
});

test("an error that nobody foresaw is a failed check, and the others go on", async () => {
  const broken = async () => {
    throw new TypeError("x is no function");
  };
  const results = await run([
    { name: "broken", look: broken },
    { name: "other", look: async () => ok("looked") },
  ]);
  expect(results.map(({ outcome }) => outcome)).toEqual(["failed", "ok"]);
  expect(results[0]?.finding).toContain("x is no function");
});

test("a check without a result is ended and failed in time", async () => {
  const clock = new TurnableClock();
  let ended = false;
  const look = (signal: AbortSignal) => {
    signal.addEventListener("abort", () => (ended = true));
    return new Promise<never>(() => undefined);
  };
  const running = run([{ name: "hung", look }], clock);
  await until(() => clock.timersWaiting > 0, { what: "the check to begin" });
  clock.advance(checkMsMax);
  expect(await running).toMatchObject([
    { outcome: "failed", finding: "There was no result within 15 s (checkMsMax)." },
  ]);
  expect(ended).toBe(true);
});

test.each([
  ["2.9.10", true],
  ["2.12.6", true],
  ["2.12.7", false],
  ["2.12.7-RC.1", false],
  ["2.15.0-dev", false],
  ["3.0.0", false],
])("NATS %s is older than 2.12.7: %s", (version, isOlder) => {
  expect(isBelow(version, [2, 12, 7])).toBe(isOlder);
});

const site = "https://a.example";
test.each([
  ["no proxy", [], undefined, undefined, "ok"],
  ["its own certificate", [], site, "cert.pem", "ok"],
  ["a proxy that is not named", [], site, undefined, "warning"],
  ["a proxy that is named", ["10.0.0.1"], site, undefined, "ok"],
  ["trust in everybody", ["10.0.0.1", "::/0"], site, undefined, "failed"],
] as const)("a site with %s: its proxies are judged", (_, trustedProxies, publicUrl, tlsCert, outcome) => {
  expect(judgeProxies({ trustedProxies, publicUrl, tlsCert }).outcome).toBe(outcome);
});

const addresses = ["addresses.json", JSON.stringify({ baseUrl: "http://127.0.0.1:9/v1" })] as const;
const pairing = ["pairing.json", "{}"] as const;
const store = ["trunkline.db", ""] as const;

type Files = readonly (readonly [name: string, text: string])[];

/** Makes the state folder of a command and that of an installed agent. */
function host(own: Files, agents: Files) {
  const folder = folderOfTest();
  const environments = [own, agents].map((files, at) => {
    const stateDir = join(folder, String(at));
    mkdirSync(stateDir);
    for (const [name, text] of files) writeFileSync(join(stateDir, name), text);
    return { TRUNKLINE_STATE_DIR: stateDir };
  });
  return { own: environments[0] ?? {}, agent: environments[1] ?? {} };
}

const cases: readonly (readonly [what: string, side: string, own: Files, agents: Files])[] = [
  ["a site that runs here", "site", [addresses, store], [pairing]],
  ["a machine whose agent is installed, beside a site that does not run", "machine", [store], [pairing]],
  ["a machine that is paired in this folder", "machine", [pairing], []],
  ["a site that does not run, where no machine is paired", "site", [store], []],
  ["a machine, where there is nothing yet", "machine", [], []],
];
test.each(cases)("doctor looks at %s", (_, side, files, agents) => {
  const { own, agent } = host(files, agents);
  expect(sideOf(own, agent)).toBe(side);
});
