import { expect, test } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import { FollowerOnAWire } from "./follower-on-a-wire.ts";

/** What a follower in these tests lets an answer be ahead of its client. */
const creditBytes = 100;
const { streamCreditBytes, creditStepBytes, takenStepBytes } = limits;
const piece = "x".repeat(40);

test("credit is given as the client takes the answer, once half of what there was is used up", () => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, piece);
  expect(wire.take()).toEqual(["job"]);
  wire.data(2, piece);
  expect(wire.take()).toEqual([`credit 80 ${80 + creditBytes}`]);
});

test("credit of a long answer is given by small steps, so that its machine need not keep much of what has arrived", () => {
  const wire = new FollowerOnAWire({ creditBytes: streamCreditBytes }).accept();
  wire.data(1, "x".repeat(creditStepBytes - 1));
  expect(wire.take()).toEqual(["job"]);
  wire.data(2, "x");
  expect(wire.take()).toEqual([`credit ${creditStepBytes} ${creditStepBytes + streamCreditBytes}`]);
});

test("credit is not given for what the client leaves unread, and comes when it reads on", () => {
  const wire = new FollowerOnAWire().accept();
  wire.backlog = limits.unreadBytesMax + 1;
  wire.data(1, piece);
  wire.data(2, piece);
  wire.pass(1_000);
  expect(wire.take()).toEqual(["job"]);
  wire.backlog = limits.unreadBytesMax;
  wire.pass(50);
  expect(wire.take()).toEqual([`credit 80 ${80 + creditBytes}`]);
});

test("credit that was lost is given again when the beat shows an older limit", () => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, piece);
  wire.data(2, piece);
  wire.take();
  wire.beat("running", 2, creditBytes);
  expect(wire.take()).toEqual([`credit 80 ${80 + creditBytes}`]);
  wire.beat("running", 2, 80 + creditBytes);
  expect(wire.take()).toEqual([]);
});

test("credit is nothing that a machine of an older build is asked about", () => {
  const wire = new FollowerOnAWire().accept();
  wire.data(1, piece);
  wire.data(2, piece);
  wire.take();
  wire.beat("running", 2, 0);
  expect(wire.take()).toEqual([]);
});

const slow = (): FollowerOnAWire => new FollowerOnAWire({ creditBytes: streamCreditBytes }).accept();

test("the lease of a slow stream is what its client took, once for each time that it came on", () => {
  const wire = slow();
  wire.backlog = limits.unreadBytesMax + 1;
  wire.data(1, "x".repeat(takenStepBytes + 39));
  expect(wire.follower.tellTaken()).toBeUndefined();
  wire.backlog = 0;
  expect(wire.follower.tellTaken()).toBe(takenStepBytes + 39);
  expect(wire.follower.tellTaken()).toBeUndefined();
});

test("the lease of a slow stream takes the place of credit, as soon as a beat shows that the machine knows what to make of it", () => {
  const wire = slow();
  wire.take();
  let taken = 0;
  for (let sequence = 1; sequence <= 40; sequence += 1) {
    wire.data(sequence, "x".repeat(creditStepBytes / 4));
    taken += creditStepBytes / 4;
    expect(wire.follower.tellTaken()).toBe(taken);
    wire.beat("running", sequence, taken + streamCreditBytes);
  }
  expect(wire.take()).toEqual([]);
});

test("the lease of a slow stream is no credit to a machine of an older build, which is given it as before", () => {
  const wire = slow();
  wire.take();
  for (let sequence = 1; sequence <= 4; sequence += 1) {
    wire.data(sequence, "x".repeat(creditStepBytes / 4));
    wire.follower.tellTaken();
    wire.beat("running", sequence, streamCreditBytes);
  }
  expect(wire.take()).toContain(`credit ${creditStepBytes} ${creditStepBytes + streamCreditBytes}`);
});

test("the lease of a slow stream bounds what a machine may say of its credit", () => {
  const wire = slow();
  wire.take();
  wire.beat("running", 0, Number.MAX_SAFE_INTEGER);
  wire.data(1, "x".repeat(creditStepBytes));
  expect(wire.take()).toEqual([`credit ${creditStepBytes} ${creditStepBytes + streamCreditBytes}`]);
});

test("a machine that exceeds its credit loses its job, and the frame that went too far is not passed on", () => {
  const wire = new FollowerOnAWire().accept();
  wire.backlog = limits.unreadBytesMax + 1;
  wire.data(1, piece);
  wire.data(2, piece);
  wire.data(3, piece);
  expect(wire.told).toEqual(["accepted", piece, piece, "fault upstream_error"]);
  expect(wire.take()).toContain("cancel gave_up");
});

test("a machine that exceeds its credit may use up all that a lease has told it, which counts as credit", () => {
  const wire = new FollowerOnAWire({ creditBytes: streamCreditBytes }).accept();
  wire.data(1, "x".repeat(takenStepBytes));
  expect(wire.follower.tellTaken()).toBe(takenStepBytes);
  wire.backlog = limits.unreadBytesMax + 1;
  wire.data(2, "x".repeat(streamCreditBytes));
  expect(wire.outcomes).toEqual([]);
  wire.data(3, "x");
  expect(wire.outcomes).toMatchObject([{ kind: "fault", fault: { code: "upstream_error" } }]);
});

test("a machine that exceeds its credit may not send more of a gathered answer than one tick has granted it", () => {
  const wire = new FollowerOnAWire({ gathered: true }).accept();
  wire.data(1, piece);
  wire.data(2, piece);
  expect(wire.take()).toEqual(["job"]);
  wire.pass(50);
  expect(wire.take()).toEqual([`credit 80 ${80 + creditBytes}`]);
  wire.data(3, "x".repeat(creditBytes));
  expect(wire.outcomes).toEqual([]);
  wire.data(4, "x");
  expect(wire.told.at(-1)).toBe("fault upstream_error");
});
