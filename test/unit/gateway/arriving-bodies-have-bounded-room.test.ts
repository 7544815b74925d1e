import type { IncomingHttpHeaders } from "node:http";
import { expect, test } from "vitest";
import { UploadRoom } from "../../../services/gateway/intake/upload-room.ts";

const sized = (bytes: number) => ({ "content-length": String(bytes) });
const chunked = { "transfer-encoding": "chunked" };
let senders = 0;
/** Each from another sender, unless one is named. */
function enter(
  room: UploadRoom,
  headers: IncomingHttpHeaders,
  { bodyBytesMax = 60, whose = `sender ${(senders += 1)}` } = {},
) {
  return room.enter({ headers, bodyBytesMax, whose });
}

test("bodies that arrive at once are refused above the limit, which is named, and not once others have left", () => {
  const room = new UploadRoom(100);
  const leave = enter(room, sized(60));
  enter(room, sized(40));
  expect(() => enter(room, sized(1))).toThrow(/100 bytes already, .*\(uploadBytesMax\)/);
  leave();
  leave();
  enter(room, sized(60));
  expect(() => enter(room, sized(1))).toThrow(expect.objectContaining({ code: "server_is_overloaded" }));
});

test("nobody takes more than a quarter, or one body if that is more, and has it again when it has left", () => {
  const room = new UploadRoom(400);
  const whose = "alice";
  const leave = enter(room, sized(60), { whose });
  enter(room, sized(40), { whose });
  expect(() => enter(room, sized(1), { whose })).toThrow(/quarter/);
  enter(room, sized(60), { whose: "bob" });
  leave();
  enter(room, sized(60), { whose });
  expect(() => enter(new UploadRoom(100), sized(60))).not.toThrow();
});

test("a body counts with what it says, one that does not say with the most that it may be, and none with nothing", () => {
  const room = new UploadRoom(100);
  enter(room, {});
  enter(room, chunked);
  expect(() => enter(room, chunked)).toThrow(/uploadBytesMax/);
  enter(room, sized(40));
  enter(room, {});
});

test("a body that claims more than is allowed takes no more than that: it is refused for its size", () => {
  const room = new UploadRoom(100);
  enter(room, sized(1e15));
  enter(room, sized(40));
});
