import { writerOf } from "../writer-of-a-test.ts";
import { offerOf } from "../offers.ts";
import { beforeEach, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { AnswerCourse } from "../../../../services/gateway/jobs/answer-course.ts";
import { payloadOf, plainly } from "../../../harness/answer-payload.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

const word = payloadOf({ kind: "text", text: "a" });

let clock: TurnableClock;
let counted: string[];
let gaps: number[];
let course: AnswerCourse;
beforeEach(() => {
  clock = new TurnableClock();
  counted = [];
  gaps = [];
  const meter = {
    offerRefused: (machine: string, reason: string) => void counted.push(`${machine} refused: ${reason}`),
    streamBegan: (model: string) => {
      counted.push(`began ${model}`);
      return { observe: (seconds: number) => void gaps.push(seconds) };
    },
    usageNotBelieved: () => undefined,
    streamEnded: () => void counted.push("ended"),
  };
  course = new AnswerCourse({ clock, meter });
});

const offer = (machine: string) => offerOf(machine, { job: `job-${machine}` });
const following = (streamed: boolean): AnswerCourse => course.following(writerOf(), { streamed, render: plainly });

test("the course of an answer names every job that was offered, counts who refused, and knows who took it", () => {
  const answer = following(true);
  answer.onOffer(offer("attic"));
  answer.on({ kind: "fault", fault: new Fault("server_is_overloaded", { message: "It is full." }), taken: false });
  answer.onOffer(offer("cellar"));
  answer.on({ kind: "accepted" });
  expect(course.tried.map(({ offer: { job } }) => job)).toEqual(["job-attic", "job-cellar"]);
  expect(counted).toEqual(["attic refused: server_is_overloaded"]);
  expect([course.machine, course.model, course.failovers]).toEqual(["cellar", "llama3", 0]);
});

test("the course of an answer counts a failover when one that had been taken is offered again, and the time from its last acceptance", () => {
  const answer = following(true);
  answer.onOffer(offer("attic"));
  answer.on({ kind: "accepted" });
  clock.advance(500);
  answer.onOffer(offer("cellar"));
  clock.advance(20);
  answer.on({ kind: "accepted" });
  expect([course.failovers, course.acceptedAtMs, course.machine]).toEqual([1, clock.now(), "cellar"]);
});

test("the course of an answer counts the gaps between the pieces of a stream, and its end once", () => {
  const answer = following(true);
  answer.onOffer(offer("attic"));
  clock.advance(1_000);
  for (const afterMs of [0, 20, 40]) {
    clock.advance(afterMs);
    answer.on({ kind: "data", payload: word, outputTokens: 1 });
  }
  expect(gaps).toEqual([0.02, 0.04]);
  course.end();
  course.end();
  expect(counted).toEqual(["began llama3", "ended"]);
});

test("the course of an answer counts no gaps in an answer that is sent whole", () => {
  const answer = following(false);
  answer.onOffer(offer("attic"));
  answer.on({ kind: "data", payload: word, outputTokens: 1 });
  answer.on({ kind: "data", payload: word, outputTokens: 2 });
  course.end();
  expect([gaps, counted]).toEqual([[], []]);
  expect(course.firstAtMs).toBe(clock.now());
});
