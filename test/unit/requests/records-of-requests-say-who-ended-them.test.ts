import { expect, test } from "vitest";
import { requestRecord } from "#shared/requests/request-record.ts";
import { showRequest } from "#shared/requests/shown-request.ts";
import {
  enderOf,
  recordedTextMax,
  RecordedRefusals,
  recordOf,
  refusalsRecordedPerSecond,
  triedMax,
} from "../../../services/gateway/requests/record-request.ts";
import { AnswerCourse } from "../../../services/gateway/jobs/answer-course.ts";
import { Fault } from "#shared/fault/fault.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";
import { chosenOf, offerOf } from "../gateway/offers.ts";

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
  from: { address: "10.0.0.7", path: "/v1/messages", headers: { "user-agent": "x".repeat(5_000) } },
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
