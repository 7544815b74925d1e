import { expect, test } from "vitest";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { findBest } from "../../../services/console/find-words.ts";
import { browserText } from "../../../services/console/session-words.ts";
import { findTroubles, siteText } from "../../../services/console/site-words.ts";
import { dayTimes, detailWords } from "../../../services/console/trail-words.ts";

test("a browser is named by its User-Agent with its system, and an unknown one as it names itself", () => {
  const mac =
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18 Safari/605";
  const edge = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/131.0 Safari/537.36 Edg/131.0";
  const phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1 CriOS/131 Mobile Safari/604";
  expect([mac, edge, phone, "curl/8.5.0"].map(browserText)).toEqual([
    "Safari on macOS",
    "Edge on Windows",
    "Chrome on iPhone",
    "curl/8.5.0",
  ]);
});

test.each([
  ["a limit", { rpm: 120, tpm: null, was: { rpm: 60, tpm: null } }, "requests a minute 60 → 120"],
  ["a mark that was taken away", { was: { external: true } }, "external machines yes → none"],
  ["the only field", { expires_at: "2026-06-30T10:00:00Z", was: "2026-04-01T10:00:00Z" }, /^expires .*Apr.* → .*Jun/],
  ["a name", { was: "attic" }, "was attic"],
  ["labels", { labels: ["gpu"], was: { labels: [] } }, "labels none → gpu"],
])("a change of %s is told as before and after", (_, detail, words) => {
  expect(detailWords(detail)).toEqual(typeof words === "string" ? words : expect.stringMatching(words));
});

test("a day of the trail lasts from midnight to midnight of the viewer, and no day is no limit", () => {
  const { since = "", until = "" } = dayTimes("2026-11-29");
  expect(new Date(since).getHours()).toBe(0);
  expect(Date.parse(until) - Date.parse(since)).toBe(86_400_000);
  expect(dayTimes("")).toEqual({});
});

test("a find lists what has each word, the beginnings of words before other parts", () => {
  const entries = ["Overview", "home-4090", "qwen3-coder:30b", "Models", "alice's decoder"].map((text, place) => ({
    kind: place === 1 ? "machine" : "thing",
    text,
    address: text,
  }));
  const find = (asked: string) => findBest(entries, asked, 3).map(({ text }) => text);
  expect(find("CODER")).toEqual(["qwen3-coder:30b", "alice's decoder"]);
  expect(find("ov")).toEqual(["Overview"]);
  expect(find("4090 mach")).toEqual(["home-4090"]);
  expect(find("coder nothing")).toEqual([]);
  expect(find("")).toHaveLength(3);
});

const nowMs = Date.UTC(2026, 10, 29, 12);
const inDays = (days: number): string => new Date(nowMs + days * 86_400_000).toISOString();
const gateway = { name: "gw-1", version: "0.4.0", is_this: true, started_at: null, running: 0 };
const status = {
  gateways: [gateway],
  store: "Redis",
  broker: "nats://10.0.0.2",
  problems: [],
  certificates: [{ setting: "TRUNKLINE_TLS_CERT", names: "models.example", expires_at: inDays(60) }],
  backed_up_at: null,
  settings: null,
};
const machine = {
  machine: "attic",
  state: "ready",
  status: "present",
  takes_work: true,
  why: null,
  memory: { disk_free_mb: 90_000 },
} as unknown as ShownFleetMachine;
const failure = (model: string, minutesAgo: number, httpStatus = 502) =>
  ({ at: inDays(-minutesAgo / 1_440), total_ms: 0, model, status: httpStatus, code: "upstream_error" }) as ShownRequest;
const quiet = { machines: [machine], status, failures: [], nowMs };

test("a site in order has no trouble, and is one line", () => {
  expect(findTroubles(quiet)).toEqual([]);
  expect(siteText(quiet, 12)).toBe("1 gateway · 1 machine · 12 models · version 0.4.0 · certificate good for 60 d");
});

test.each<[string, Partial<typeof quiet>, string]>([
  ["a machine away", { machines: [{ ...machine, status: "offline", takes_work: false }] }, "attic is offline"],
  [
    "a full disk",
    { machines: [{ ...machine, memory: { ...machine.memory, disk_free_mb: 640 } as typeof machine.memory }] },
    "attic has 640 MB of disk left",
  ],
  [
    "a model that fails",
    { failures: [1, 2, 14].map((minutes) => failure("qwen3", minutes)) as never[] },
    "qwen3 failed 3 times in the last 15 minutes, at last with upstream_error.",
  ],
  [
    "a certificate that ends",
    { status: { ...status, certificates: [{ setting: "TRUNKLINE_TLS_CERT", names: "", expires_at: inDays(9.5) }] } },
    "TRUNKLINE_TLS_CERT ends in 9 d. Renew",
  ],
  [
    "gateways of two versions",
    { status: { ...status, gateways: [gateway, { ...gateway, version: "0.3.0" }] } },
    "Gateways run different versions (0.4.0, 0.3.0).",
  ],
])("%s is a trouble in a sentence", (_, change, sentence) => {
  const troubles = findTroubles({ ...quiet, ...change }).map(({ subject, text }) => `${subject} ${text}`);
  expect(troubles).toEqual([expect.stringContaining(sentence)]);
});

test("failures of clients, old ones and a cordoned machine are no trouble", () => {
  const failures = [
    failure("a", 1),
    failure("a", 2),
    failure("a", 16),
    ...[1, 2, 3].map((at) => failure("b", at, 404)),
  ];
  const cordoned = {
    ...machine,
    takes_work: false,
    pairing: "cordoned",
    why: "cordoned: new fans",
  } as ShownFleetMachine;
  const words = findTroubles({ ...quiet, failures, machines: [{ ...cordoned }] });
  expect(words.map(({ subject }) => subject)).toEqual([]);
});
