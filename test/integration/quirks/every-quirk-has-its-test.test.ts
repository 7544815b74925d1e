import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");

/** What runtimes do differently, point by point. A test of this folder says in its name which of them it is about. */
const quirks: Readonly<Record<number, string>> = {
  1: "how the limit of an answer is called",
  2: "the forms of messages",
  3: "messages of tools, and arguments of calls",
  4: "images",
  5: "tool_choice, n and parallel_tool_calls",
  6: "defaults of temperature and top_p",
  7: "how much to think",
  8: "stream_options",
  9: "response_format",
  10: "a last message of the assistant's",
  11: "id, created and model",
  12: "the first chunk",
  13: "thoughts",
  14: "tool calls",
  15: "the finish reason",
  16: "usage",
  17: "[DONE] and errors in a stream",
  18: "errors",
  19: "what clients repeat",
  20: "silence",
  21: "lines and flushing",
  22: "letters in several bytes",
  23: "clients that leave",
  24: "vectors",
  25: "a list without models",
};

/** What is no runtime's doing alone is tested where it is done as well. */
const elsewhere: readonly (readonly [quirk: number, file: string, name: string])[] = [
  [5, "unit/runtimes/fan-out", "is asked once for each answer wanted, one after the other, and never for several"],
  [5, "unit/runtimes/fan-out", "is told of in one usage at the end, with the prompt counted once"],
  [15, "unit/runtimes/fan-out", "has failed when one of its answers has no finish"],
  [17, "unit/gateway/a-stream-is-written-as-it-comes", "and then [DONE]"],
  [17, "unit/gateway/a-stream-is-written-as-it-comes", "that fails ends with the error as an event, without [DONE]"],
  [18, "unit/gateway/an-error-body-has-four-keys", "has message, type, param and code, as texts or null"],
  [19, "unit/gateway/an-error-body-has-four-keys", "keep official clients from repeating what would fail again"],
  [19, "unit/gateway/an-error-body-has-four-keys", "say when to try again on every 503"],
  [20, "unit/gateway/a-stream-is-written-as-it-comes", "is held back until the first piece"],
  [20, "unit/gateway/a-stream-is-written-as-it-comes", "is followed by a comment every commentIntervalMs"],
  [21, "unit/gateway/a-stream-is-written-as-it-comes", "begins with a 200 that says what it is"],
  [21, "unit/runtimes/server-sent-events", "may lack the space behind the colon"],
  [22, "unit/runtimes/server-sent-events", "are the same however the bytes are cut, also within a character"],
  [22, "unit/runtimes/json-lines", "are the same however the bytes are cut, also within a character"],
  [23, "system/a-client-that-leaves-stops-the-machine", "in the middle of a stream"],
  [24, "unit/answer/embeddings-are-a-list-of-vectors", "as base64 are 32-bit floats, little-endian"],
];

describe("quirks of runtimes", () => {
  const tested = new Set(
    readdirSync(import.meta.dirname)
      .filter((file) => file.endsWith(".test.ts"))
      .flatMap((file) => namedIn(readFileSync(join(import.meta.dirname, file), "utf8"))),
  );

  test.each(Object.entries(quirks))("quirk %s, %s, has a test that is named for it", (number) => {
    expect([...tested]).toContain(Number(number));
  });

  test.each(elsewhere)("quirk %i is tested in %s as well: %s", (_, file, name) => {
    expect(readFileSync(join(root, "test", `${file}.test.ts`), "utf8")).toContain(name);
  });
});

/** The numbers that names of tests begin with: `quirk 7: …`, `quirks 12, 13 and 16: …`. */
function namedIn(source: string): number[] {
  const names = source.matchAll(/["'`]quirks? (\d[\d, and]*)(?=: )/g);
  return [...names].flatMap(([, numbers = ""]) => numbers.match(/\d+/g)?.map(Number) ?? []);
}
