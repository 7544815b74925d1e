import { expect, test } from "vitest";
import { Row } from "#shared/history/sums.ts";
import { dayMs } from "#shared/process/clock.ts";
import { timingAt } from "#shared/protocol/timing.ts";
import { Roster } from "../../../../services/gateway/fleet/roster.ts";
import {
  awayGateways,
  awayMachines,
  endingCertificates,
  failedRequests,
  followGateways,
  fullDisk,
  spentShares,
  unmetKeeps,
} from "../../../../services/gateway/alerts/judge-site.ts";
import { presenceOf, recordOf } from "../machines-of-a-fleet.ts";

const nowMs = Date.UTC(2026, 0, 2);
const subjects = (found: readonly { readonly subject: string }[]) => found.map(({ subject }) => subject);

test("machines that are expected and not heard are away, external ones alike, and neither cordoned, drained nor revoked ones", () => {
  const roster = new Roster(timingAt(1), (machine) => (machine === "cordoned-plain" ? "cordoned" : undefined));
  for (const machine of ["heard", "plain", "cordoned-plain", "silent"]) roster.announced(presenceOf(machine), 0);
  roster.announced(presenceOf("left", { state: "gone" }), 0);
  roster.announced(presenceOf("heard"), 60_000);
  const cordon = { reason: "new fans", at: 1, by: "o" };
  const records = [
    recordOf("heard", { publicKey: "a" }),
    recordOf("silent", { publicKey: "b" }),
    recordOf("never", { publicKey: "c", pairedAt: nowMs - 5_000 }),
    recordOf("cloud", { publicKey: "d", pairedAt: 1, external: true }),
    recordOf("cordoned", { publicKey: "e", cordon }),
    recordOf("drained", { publicKey: "f", cordon: { ...cordon, drains: true } }),
    recordOf("revoked", { publicKey: "g", revokedAt: 1 }),
    recordOf("only-models", { models: ["*"] }),
  ];
  const times = { nowMs, heardSinceMs: nowMs - 50_000, hereToWallMs: nowMs - 60_000 };
  const open = ["elsewhere", "revoked"].map((subject) => ({ subject, beganAt: nowMs - 55_000 }));
  open.push({ subject: "removed", beganAt: nowMs - 45_000 });
  const away = new Map(
    awayMachines(records, roster.all(60_000), open, times).map((each) => [each.subject, each.since]),
  );
  expect(away).toEqual(
    new Map([
      ["never", nowMs - 5_000],
      // Silence from before this gateway heard machines does not count.
      ["silent", nowMs - 50_000],
      ["cloud", nowMs - 50_000],
      // Another gateway has heard it, and this one never did.
      ["elsewhere", nowMs - 50_000],
      ["plain", nowMs - 50_000],
    ]),
  );
});

test("a kept model is unmet while a copy of it is nowhere, waits or failed, and not while a copy is loaded or pulled", () => {
  const step = (model: string, state: "unmet" | "failed" | "loading" | "pulling" | "suspended" | "loaded") => {
    return { model, state, machine: state === "unmet" ? undefined : "attic", why: "out of memory" };
  };
  const steps = [step("a", "loaded"), step("a", "unmet"), step("b", "failed"), step("c", "loading")];
  const found = unmetKeeps([...steps, step("d", "pulling"), step("e", "suspended")]);
  expect(found).toEqual([
    { subject: "a", text: "The kept model a lacks copies in memory (1): out of memory." },
    { subject: "b", text: "The kept model b lacks copies in memory (1): attic out of memory." },
  ]);
});

test("a budget is told at 80 and at 100 per cent of its period, in tokens and in money", () => {
  const use = { of: "team research", unit: "tokens", limit: 1_000, per: "day", period: "2026-01-02" } as const;
  expect(spentShares({ ...use, used: 799 }, "EUR")).toEqual([]);
  expect(subjects(spentShares({ ...use, used: 800 }, "EUR"))).toEqual(["team research, 80 % of tokens for 2026-01-02"]);
  const money = { ...use, unit: "money", limit: 5_000_000, used: 5_000_000 } as const;
  expect(spentShares(money, "EUR").map(({ text }) => text)).toEqual([
    "The team research has used 80 % of its budget of 5.00 EUR for 2026-01-02.",
    "The team research has used 100 % of its budget of 5.00 EUR for 2026-01-02.",
  ]);
});

test("requests are told as failed from 20 with a status of 5xx and 5 per cent on, until both have halved", () => {
  const row = (requests: number, failures: Record<string, number>) => {
    const made = new Row(undefined, new Map(Object.entries(failures)));
    made.bump(0, requests);
    return made;
  };
  expect(failedRequests(row(19, { upstream_error: 19 }), false)).toEqual([]);
  expect(failedRequests(row(401, { upstream_error: 20 }), false)).toEqual([]);
  expect(failedRequests(row(30, { client_closed: 25, rate_limit_tokens: 5 }), false)).toEqual([]);
  const [found] = failedRequests(row(400, { upstream_error: 8, agent_offline: 12, invalid_value: 300 }), false);
  expect(found?.text).toContain(
    "400 requests within 5 minutes, at least 5 % ended with a status of 5xx, most with agent_offline",
  );
  expect(failedRequests(row(400, { upstream_error: 10 }), true)).toHaveLength(1);
  expect(failedRequests(row(400, { upstream_error: 9 }), true)).toEqual([]);
});

test("a certificate is told 14 days before its end, and a disk below 5 per cent until it has 6 again", () => {
  const ends = (inMs: number) => [
    { setting: "TRUNKLINE_TLS_CERT", names: "a.example", expires_at: new Date(nowMs + inMs).toISOString() },
  ];
  expect(endingCertificates(ends(14 * dayMs), nowMs)).toEqual([]);
  expect(subjects(endingCertificates(ends(14 * dayMs - 1), nowMs))).toEqual(["TRUNKLINE_TLS_CERT (a.example)"]);
  expect([fullDisk(0.05, false), fullDisk(0.06, true)]).toEqual([[], []]);
  expect([fullDisk(0.049, false), fullDisk(0.059, true)].map((each) => each.length)).toEqual([1, 1]);
});

test("a gateway that stops noting itself without a goodbye is away until another one has started, and for a day at most", () => {
  const gateway = (token: string, notedAt: number, startedAt = 1) => {
    return { token, name: token, version: "0.3.0", notedAt, startedAt };
  };
  const state = { judgedAt: nowMs, alarms: [], gateways: {} };
  const three = ["a", "b", "c"].map((each) => gateway(each, nowMs));
  const known = followGateways(state, three, nowMs);
  expect(Object.keys(known)).toEqual(["a", "b", "c"]);
  // Of these, a goes on, b is killed, and c stops.
  const stopped = { ...state, gateways: { ...known, c: { name: "c", seenAt: nowMs, left: true as const } } };
  const soon = followGateways(stopped, [gateway("a", nowMs + 10_000), gateway("b", nowMs)], nowMs + 10_000);
  expect(awayGateways(soon, nowMs + 2_000)).toMatchObject([{ subject: "b", since: nowMs + 2_000 }]);
  expect(awayGateways(soon, 0)).toMatchObject([{ subject: "b", since: nowMs }]);
  const later = { ...state, gateways: soon };
  const after = (there: ReturnType<typeof gateway>[], inMs: number) =>
    subjects(awayGateways(followGateways(later, there, nowMs + inMs), 0));
  expect(after([gateway("a", nowMs + 40_000)], 40_000)).toEqual(["b"]);
  expect(after([gateway("a", nowMs + 40_000), gateway("d", nowMs + 40_000, nowMs + 3_000)], 40_000)).toEqual([]);
  expect(after([gateway("a", nowMs + dayMs)], dayMs)).toEqual([]);
  // A gateway that had started just before the other one was killed stands for none.
  expect(after([gateway("a", nowMs + 40_000, nowMs + 1_000)], 40_000)).toEqual(["b"]);
  // A gateway that nobody saw in its last seconds was there when the site was judged last.
  expect(
    awayGateways(followGateways({ ...state, gateways: known }, [gateway("a", nowMs + 90_000)], nowMs + 90_000), 0),
  ).toMatchObject([
    { subject: "b", since: nowMs },
    { subject: "c", since: nowMs },
  ]);
});
