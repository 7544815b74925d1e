import { expect, test } from "vitest";
import { UploadRoom } from "../../../services/gateway/openai/upload-room.ts";

const sized = (bytes: number) => ({ "content-length": String(bytes) });

test("bodies that arrive at once are refused above the limit, which is named, and not once others have left", () => {
  const room = new UploadRoom(100);
  const leave = room.enter(sized(60), 1_000);
  room.enter(sized(40), 1_000);
  expect(() => room.enter(sized(1), 1_000)).toThrow(/100 bytes already \(uploadBytesMax\)/);
  leave();
  leave();
  room.enter(sized(60), 1_000);
  expect(() => room.enter(sized(1), 1_000)).toThrow(expect.objectContaining({ code: "server_is_overloaded" }));
});

test("a body counts with what it says, one that does not say with the most that it may be, and none with nothing", () => {
  const room = new UploadRoom(100);
  room.enter({}, 60);
  room.enter({ "transfer-encoding": "chunked" }, 60);
  expect(() => room.enter({ "transfer-encoding": "chunked" }, 60)).toThrow(/uploadBytesMax/);
  room.enter(sized(40), 60);
  room.enter({}, 60);
});

test("a body that claims more than is allowed takes no more than that: it is refused for its size", () => {
  const room = new UploadRoom(100);
  room.enter(sized(1e15), 60);
  room.enter(sized(40), 60);
});
