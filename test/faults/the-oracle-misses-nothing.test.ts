import { describe, expect, test } from "vitest";
import type { LogLine } from "../harness/trunkline-process.ts";
import type { FrameSeen, JobSeen } from "../harness/wire-watch.ts";
import { complaintsAbout, type Asked, type Ledgers } from "./oracle.ts";
import { scriptedText } from "./scripted-request.ts";

const frame = (kind: FrameSeen["kind"], sequence = 0): FrameSeen => ({
  kind,
  sequence,
  atMs: 0,
  payload: Buffer.alloc(0),
});

const asked: Asked = {
  wish: { nonce: "abc", model: "scripted", script: { tokens: 3 }, stream: true },
  outcome: "answered",
  text: scriptedText("abc", 3),
  headers: { "x-request-id": "req_1" },
};
const line: LogLine = { msg: "request", level: 30, request: "req_1", outcome: "ok", completionTokens: 3 };
const job: JobSeen = {
  job: "job-1",
  machine: "attic",
  gateway: "gateway-1",
  kind: "chat",
  nonce: "abc",
  parts: 0,
  times: 1,
  progress: 0,
  frames: [frame("accept"), frame("data", 1), frame("data", 2), frame("end", 3)],
};

/** What is said of a run in which all is well but for this. */
function about(wrong: {
  readonly client?: Partial<Asked>;
  readonly lines?: readonly LogLine[];
  readonly jobs?: readonly JobSeen[];
}): string[] {
  const { client = {}, lines = [line], jobs = [job] } = wrong;
  const ledgers: Ledgers = { clients: [{ ...asked, ...client }], gateways: lines, machines: jobs };
  return complaintsAbout(ledgers);
}

describe("the oracle says nothing", () => {
  test("the oracle says nothing of a request that was answered, run once and settled once", () => {
    expect(about({})).toEqual([]);
  });

  test("the oracle says nothing of a request that ended in an error behind an exact beginning", () => {
    const lost = { outcome: "event agent_disconnected", text: "abc-0 " } as const;
    expect(about({ client: lost, lines: [{ ...line, outcome: "agent_disconnected" }] })).toEqual([]);
  });

  test("the oracle says nothing of a job whose frames were sent again, and whose end was repeated", () => {
    const again = [...job.frames, frame("data", 2), frame("end", 3), frame("end", 3)];
    expect(about({ jobs: [{ ...job, frames: again }] })).toEqual([]);
  });

  test("the oracle says nothing of a request that another machine had first", () => {
    const before = { ...job, job: "job-0", machine: "cellar", frames: [frame("accept")] };
    expect(about({ jobs: [before, job] })).toEqual([]);
  });
});

describe("the oracle complains", () => {
  test.each<[string, Parameters<typeof about>[0], RegExp]>([
    ["of a request without an outcome", { client: { outcome: undefined } }, /no outcome/],
    ["of a stream that merely stopped", { client: { outcome: "truncated" } }, /closed without an end/],
    ["of an event that nobody can read", { client: { outcome: "garbled" } }, /could not be read/],
    ["of a text that is short", { client: { text: "abc-0 abc-1 " } }, /not what it must be/],
    ["of a hole in a text", { client: { text: "abc-0 abc-2 " } }, /not what it must be/],
    ["of another's word", { client: { text: "abc-0 xyz-1 abc-2 " } }, /in place of/],
    ["of a broken text before an error", { client: { outcome: "event stream_gap", text: "abc-1 " } }, /no beginning/],
    ["of two ids in one answer", { client: { ids: new Set(["one", "other"]) } }, /has the ids/],
    ["of another model's name", { client: { models: new Set(["/root/other"]) } }, /is of/],
    ["of a field that only the runtime knows", { client: { fields: new Set(["id", "prompt_token_ids"]) } }, /fields/],
    ["of a request that was settled twice", { lines: [line, line] }, /settled 2 times/],
    ["of one that was settled nowhere", { lines: [{ msg: "other", level: 30 }] }, /settled nowhere/],
    ["of an answer that was settled as a failure", { lines: [{ ...line, outcome: "stream_gap" }] }, /settled as/],
    ["of a failure that was settled as an answer", { client: { outcome: "event stream_gap", text: "" } }, /success/],
    ["of other tokens than were given", { lines: [{ ...line, completionTokens: 4 }] }, /3 tokens/],
    ["of a hole in the frames", { jobs: [{ ...job, frames: [frame("accept"), frame("data", 2)] }] }, /sent all of it/],
    ["of two different ends", { jobs: [{ ...job, frames: [...job.frames, frame("fault", 3)] }] }, /ended in/],
    ["of more placements than failover allows", { jobs: [job, job, job, job] }, /placed 4 times/],
    ["of a job that nobody asked for", { jobs: [job, { ...job, nonce: "xyz" }] }, /nobody asked for/],
  ])("%s", (_, wrong, complaint) => {
    expect(about(wrong).join("\n")).toMatch(complaint);
  });
});
