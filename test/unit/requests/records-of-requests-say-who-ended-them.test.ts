import { untraced } from "../../../services/gateway/http/request-state.ts";
import { expect, test } from "vitest";
import { requestRecord, type RequestRecord } from "#shared/requests/request-record.ts";
import { showRequest } from "#shared/requests/shown-request.ts";
import {
  enderOf,
  RecordedRefusals,
  recordedTextMax,
  recordOf,
  refusalsRecordedPerSecond,
  triedMax,
} from "../../../services/gateway/requests/record-request.ts";
import { AnswerCourse } from "../../../services/gateway/jobs/answer-course.ts";
import { Fault } from "#shared/fault/fault.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { chosenOf, offerOf } from "../gateway/offers.ts";
import { RequestRecords } from "#shared/requests/request-records.ts";
import { shownRequest, triedMachine } from "./shown-requests.ts";
import { stepsOf } from "#shared/requests/request-steps.ts";

test.each([
  ["by the machine that answered", "ok", [undefined], undefined, "machine"],
  ["by the machine that failed under it", "upstream_error", ["upstream_error"], undefined, "machine"],
  ["by the limit that cut its answer", "ok", [undefined], "budget", "key"],
  ["by the limit that refused it", "rate_limit_requests", [], "requests", "key"],
  ["by its key, which was revoked", "key_invalid", [undefined], undefined, "key"],
  ["by its client, which left", "client_closed", [undefined], undefined, "client"],
  ["by its client, which asked for something wrong", "invalid_type", [], undefined, "client"],
  ["by the gateway, which counted its tokens", "ok", [], undefined, "gateway"],
  ["by the gateway, which lost its broker", "backend_unavailable", [], undefined, "gateway"],
] as const)("a request was ended %s", (_, code, codes, limit, ender) => {
  const tried = codes.map((each) => (each === undefined ? {} : { code: each }));
  expect(enderOf(code, { tried, limit })).toBe(ender);
});

const clock = new TurnableClock({ nowMs: 1_000 });
const ended = {
  id: "req_1",
  at: clock.wall(),
  from: { address: "10.0.0.7", path: "/v1/messages", headers: { "user-agent": "x".repeat(5_000) }, trace: untraced },
  facts: { key: "abcdefABCDEF", model: "m".repeat(5_000), streamed: true, outcome: "ok" as const },
  startedAtMs: 1_000,
  status: 200,
  totalMs: 12.4,
  limit: undefined,
  anewAfter: undefined,
  refusedBefore: undefined,
};

test("the record of a request names the machines in their order, what each cost, and the one that came next", () => {
  const course = new AnswerCourse({ clock });
  course.onOffer(offerOf("attic", { next: [chosenOf("cellar", { reason: "slower" })] }));
  course.on({ kind: "fault", fault: new Fault("server_is_overloaded", { message: "It is full." }), taken: false });
  clock.advance(7);
  course.onOffer(offerOf("cellar", { reason: "warm", cachedTokens: 1_200 }));
  course.on({ kind: "accepted" });
  const shown = showRequest(requestRecord.parse(JSON.parse(JSON.stringify(recordOf({ ...ended, answer: course })))));
  expect(shown).toMatchObject({ machine: "cellar", answered_by: "llama3", code: "ok", advice: null });
  const [first, second] = shown.tried;
  expect(first).toMatchObject({ machine: "attic", at_ms: 0, code: "server_is_overloaded" });
  expect(first?.why).toMatch(/^costs least: [\d,]+ ms for the answer, \d+ ms for the prompt$/);
  expect(first?.others).toMatchObject([{ machine: "cellar", why: "costs more" }]);
  expect(second).toMatchObject({ machine: "cellar", at_ms: 7, code: null });
  expect(second?.why).toMatch(/^has 1,200 tokens of the prompt cached/);
});

test("the record of a request believes no machine that it had more cached than there was", () => {
  const course = new AnswerCourse({ clock });
  course.onOffer(offerOf("attic"));
  course.on({ kind: "usage", usage: { promptTokens: 10, completionTokens: 1, cachedTokens: 1e9 } });
  const jobs = { jobs: ["job"], machine: "attic", model: "llama3", failovers: 0 };
  const times = { acceptedMs: 1, loadWaitMs: undefined, firstTokenMs: 2, endedMs: 3 };
  const facts = { ...ended.facts, answer: { ...jobs, ...times, promptTokens: 10, completionTokens: 1 } };
  expect(recordOf({ ...ended, facts, answer: course }).cachedTokens).toBe(10);
});

test("the record of a request is short, however long the texts of its client and however many machines were tried", () => {
  const course = new AnswerCourse({ clock });
  for (let each = 0; each < 100; each += 1) course.onOffer(offerOf(`machine-${each}`));
  const record = recordOf({ ...ended, answer: course });
  expect([record.agent?.length, record.asked?.length]).toEqual([recordedTextMax, recordedTextMax]);
  expect([record.tried.length, record.triedBefore]).toEqual([triedMax, 100 - triedMax]);
  expect(record.tried.at(-1)?.machine).toBe("machine-99");
});

test("refusals without pause have few records, and the next record counts the others", () => {
  const refusals = new RecordedRefusals(clock);
  const got = Array.from({ length: 50 }, () => refusals.refused("a"));
  expect(got.filter((each) => each !== undefined)).toHaveLength(refusalsRecordedPerSecond);
  expect(refusals.refused("b")).toBe(0);
  clock.advance(1_000);
  expect(refusals.refused("a")).toBe(50 - refusalsRecordedPerSecond);
  expect(refusals.refused("a")).toBe(0);
});

const record: RequestRecord = {
  id: "req_1",
  at: 0,
  keyId: "abcdefABCDEF",
  address: "127.0.0.1",
  path: "/v1/chat/completions",
  streamed: false,
  tried: [],
  status: 200,
  code: "ok",
  endedBy: "machine",
  totalMs: 1,
  promptTokens: 0,
  completionTokens: 0,
};

test("a search of many requests lets the event loop go on between two pages, and ends", async () => {
  let pages = 0;
  const page = Array.from({ length: 1_000 }, () => ({ cursor: "1", stored: record }));
  const records = new RequestRecords({ page: async () => ((pages += 1) > 5 ? [] : page), get: async () => undefined });
  let turns = 0;
  const count = (): void => {
    turns += 1;
    if (pages <= 5) setImmediate(count);
  };
  setImmediate(count);
  const { found, next } = await records.find({ failed: true }, { limit: 1 });
  expect([found, next, pages]).toEqual([[], undefined, 6]);
  expect(turns).toBeGreaterThanOrEqual(5);
});

test("a machine that went on with an answer stands after the one that began it", () => {
  const tried = [
    triedMachine("attic", { at_ms: 3, code: "agent_disconnected" }),
    triedMachine("cellar", { at_ms: 1_505, from_tokens: 12 }),
  ];
  const continued = shownRequest({ accepted_ms: 5, first_token_ms: 40, total_ms: 2_500, tried });
  expect(stepsOf(continued).map(({ atMs, text }) => [atMs, text])).toEqual([
    [0, "arrived"],
    [3, "offered to attic, as llama3: costs least"],
    [5, "attic took it"],
    [40, "first piece of the answer"],
    [1_505, "attic refused it or failed: agent_disconnected"],
    [1_505, "offered to cellar, as llama3, to go on after 12 tokens: costs least"],
    [2_500, "ended by the machine: ok, status 200, 24 tokens/s"],
  ]);
});

test("a request that no machine took has no step of one", () => {
  const nothing = { machine: null, accepted_ms: null, first_token_ms: null, tokens_per_second: null };
  const refused = shownRequest({ ...nothing, tried: [], code: "model_not_found", status: 404, ended_by: "gateway" });
  expect(stepsOf(refused).map(({ text }) => text)).toEqual([
    "arrived",
    "ended by the gateway: model_not_found, status 404",
  ]);
});

test("a wait for the model's load stands with the machine that loaded it", () => {
  const waited = shownRequest({ load_wait_ms: 14_219, first_token_ms: 16_000 });
  expect(stepsOf(waited).map(({ text }) => text)).toContain("cellar took it; it waited 14.2 s for its model to load");
});

test("a search of requests ends in time with the time up to which it has looked, and goes on from its cursor", async () => {
  const asked = { id: "req_1", keyId: "abcdefABCDEF", address: "127.0.0.1", path: "/v1/chat/completions" };
  const end = { streamed: false, tried: [], status: 200, endedBy: "machine", totalMs: 1 };
  const tokens = { promptTokens: 0, completionTokens: 0 };
  const entries = Array.from({ length: 2_000 }, (_, index) => ({
    cursor: String(2_000 - index),
    stored: { ...asked, ...end, ...tokens, at: 2_000_000 - index, code: index === 1_500 ? "upstream_error" : "ok" },
  }));
  const page = async ({ before = "9999" }) =>
    entries.filter(({ cursor }) => Number(cursor) < Number(before)).slice(0, 1_000);
  const records = new RequestRecords({ page, get: async () => undefined });
  const first = await records.find({ failed: true }, { limit: 10, withinMs: 0 });
  expect(first).toMatchObject({ found: [], next: "1001", lookedUntilMs: 2_000_000 - 999 + 1 });
  const second = await records.find({ failed: true }, { limit: 10, withinMs: 0, before: first.next });
  expect(second.found.map(({ cursor }) => cursor)).toEqual(["500"]);
});
