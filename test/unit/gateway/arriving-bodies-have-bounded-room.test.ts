import { expect, test } from "vitest";
import { ArrivingBody, smallBodyBytesMax, UploadRoom } from "../../../services/gateway/http/bound-uploads.ts";

const mib = 1024 * 1024;
/** The lane of small bodies has 8 MiB of it, the lane of large ones 56 MiB, and a sender 512 KiB and 14 MiB. */
const bytesMax = 64 * mib;
const room = (): UploadRoom => new UploadRoom({ bytesMax, bodyBytesMax: mib });

/** Books a body that has come whole. */
function enter(into: UploadRoom, bytes: number, sender: string) {
  const body = new ArrivingBody(into, sender);
  body.grow(bytes);
  return body;
}

test("a body that has begun to arrive takes no more than the bytes that have come", () => {
  const uploads = room();
  for (let body = 0; body < 1_000; body += 1) enter(uploads, 1, "alice");
  expect(() => enter(uploads, 14 * mib, "alice")).not.toThrow();
});

test("large bodies are refused by the limit's name above their lane, and are taken again when others have left", () => {
  const uploads = room();
  const bodies = ["a", "b", "c", "d"].map((sender) => enter(uploads, 14 * mib, sender));
  const refused = new ArrivingBody(uploads, "e");
  expect(() => refused.grow(smallBodyBytesMax + 1)).toThrow(/\(uploadBytesMax\)/);
  refused.leave();
  bodies[0]?.leave();
  bodies[0]?.leave();
  expect(() => enter(uploads, 14 * mib, "e")).not.toThrow();
  expect(() => enter(uploads, mib, "f")).toThrow(expect.objectContaining({ code: "server_is_overloaded" }));
});

test("small bodies of other senders find room while large bodies fill their lane", () => {
  const uploads = room();
  for (const sender of ["a", "b", "c", "d"]) enter(uploads, 14 * mib, sender);
  for (const sender of ["e", "f", "g"]) expect(() => enter(uploads, smallBodyBytesMax, sender)).not.toThrow();
});

test("a sender takes no more than its share of both lanes, and has it again when its bodies have left", () => {
  const uploads = room();
  const small = enter(uploads, smallBodyBytesMax, "alice");
  enter(uploads, smallBodyBytesMax, "alice");
  enter(uploads, 14 * mib, "alice");
  expect(() => enter(uploads, 1, "alice")).toThrow(/share/);
  expect(() => enter(uploads, 14 * mib, "bob")).not.toThrow();
  small.leave();
  expect(() => enter(uploads, 1, "alice")).not.toThrow();
});

test("a body that grows leaves the lane of small bodies", () => {
  const uploads = room();
  const growing = enter(uploads, smallBodyBytesMax, "alice");
  growing.grow(mib);
  enter(uploads, smallBodyBytesMax, "alice");
  enter(uploads, smallBodyBytesMax, "alice");
  growing.leave();
  expect(() => enter(uploads, 14 * mib, "alice")).not.toThrow();
});

test("a sender may send one body of the largest size, however small its share is", () => {
  const uploads = new UploadRoom({ bytesMax, bodyBytesMax: 30 * mib });
  expect(() => enter(uploads, 30 * mib, "alice")).not.toThrow();
});
