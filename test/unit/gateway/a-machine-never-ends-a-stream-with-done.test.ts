import { describe, expect, test } from "vitest";
import { EarlyDone } from "../../../services/gateway/dispatch/early-done.ts";

/** Whether it was found when the answer came in these frames, or in frames of one byte each. */
function found(...frames: readonly (string | Uint8Array)[]): [boolean, boolean] {
  const bytes = Buffer.concat(frames.map((frame) => Buffer.from(frame)));
  const [asCut, byByte] = [new EarlyDone(), new EarlyDone()];
  const isFoundAsCut = frames.map((frame) => asCut.isIn(Buffer.from(frame))).some(Boolean);
  return [isFoundAsCut, Array.from(bytes, (byte) => byByte.isIn(Uint8Array.of(byte))).some(Boolean)];
}

const event = (content: string): string => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

describe("a line that ends a stream for clients is found", () => {
  test.each<[string, ...(string | Uint8Array)[]]>([
    ["alone in a frame", "data: [DONE]\n\n"],
    ["without a blank", "data:[DONE]\n\n"],
    ["with many blanks", `data:${" \t".repeat(3_000)}[DONE]\n\n`],
    ["with many blanks over frames", "data: ", " ".repeat(300), "\t[DO", "NE]"],
    ["behind an event", event("one"), `${event("two")}data: [DONE]\n\n`],
    ["behind a lone carriage return", `${event("one").trimEnd()}\rdata: [DONE]\r\r`],
    ["behind CRLF", `data: {}\r\n\r\ndata: [DONE]\r\n\r\n`],
    ["behind a byte order mark", event("one"), "\ufeffdata: [DONE]\n\n"],
    [
      "behind a byte order mark over frames",
      event("one"),
      Uint8Array.of(0xef, 0xbb),
      Uint8Array.of(0xbf),
      "data: [DONE]",
    ],
    ["cut in its field", "dat", "a: [DONE]\n\n"],
    ["cut in its value", event("one"), "data: [DO", "NE", "]\n\n"],
    ["cut behind an event that has one in its text", event("[DONE]"), "data: [DON", "E]"],
    ["as the begin of a longer line", "data: [DONE] and more\n\n"],
    ["behind an event that came in pieces", 'data: {"a', '":"b"}', "\n\nda", "ta:", "[DONE]"],
  ])("%s", (_, ...frames) => {
    expect(found(...frames)).toEqual([true, true]);
  });
});

describe("a text that merely holds the word passes", () => {
  test.each<[string, ...(string | Uint8Array)[]]>([
    ["in a JSON string", event("the stream ends with data: [DONE] and a newline")],
    ["in a JSON string after an escaped newline", event("\ndata: [DONE]\n\n")],
    ["cut right before the word", 'data: {"content":"data:', ' [DONE]"}\n\n'],
    ["cut so that a frame begins with the whole of it", 'data: {"content":"', 'data: [DONE]"}\n\n'],
    ["in a comment", ": data: [DONE]\n\n"],
    ["in a field of another name", "xdata: [DONE]\n\nevent: [DONE]\n\n"],
    ["in lower case", "data: [done]\n\n"],
    ["as a JSON array", 'data: ["DONE"]\n\n'],
    ["in a whole answer", JSON.stringify({ content: "data: [DONE]" })],
  ])("%s", (_, ...frames) => {
    expect(found(...frames)).toEqual([false, false]);
  });

  test("and a frame full of it is looked through once", () => {
    const frame = Buffer.from(event("[DONE]".repeat(40_000)));
    const earlyDone = new EarlyDone();
    let isFound = false;
    for (let round = 0; round < 100; round += 1) isFound ||= earlyDone.isIn(frame);
    expect(isFound).toBe(false);
  });
});
