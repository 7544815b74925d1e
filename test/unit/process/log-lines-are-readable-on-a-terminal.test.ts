import { expect, test } from "vitest";
import { mintKeyToken } from "#shared/keys/key-token.ts";
import { createLog, logText } from "#shared/process/log.ts";

const time = Date.UTC(2026, 0, 1, 12, 30, 5, 7);
const clockTime = `${new Date(time).toLocaleTimeString("en-GB")}.007`;

function shown(fields: Readonly<Record<string, unknown>>): string {
  const line = JSON.stringify({ level: 30, time, pid: 7, name: "gateway", ...fields });
  return logText(`${line}\n`, { coloured: false });
}

test("a line begins with the local time, the level and the message, and its fields follow", () => {
  expect(shown({ port: 8484, url: "http://a/b?c", msg: "gateway listens" })).toBe(
    `${clockTime} INFO  gateway listens port=8484 url=http://a/b?c\n`,
  );
  expect(shown({ level: 50, reason: "it is away", codes: ["a"], none: null, msg: "failed" })).toBe(
    `${clockTime} ERROR failed reason="it is away" codes=["a"] none=null\n`,
  );
});

test("an error shows its stack on lines of its own", () => {
  const err = { type: "Error", message: "it broke", stack: "Error: it broke\n    at a.ts:1:1" };
  expect(shown({ level: 40, err, msg: "oh" })).toBe(`${clockTime} WARN  oh\n  Error: it broke\n      at a.ts:1:1\n`);
});

test("a level has a colour where the terminal shows any", () => {
  const line = JSON.stringify({ level: 50, time, msg: "failed" });
  expect(logText(line, { coloured: true })).toBe(`${clockTime} \u001b[31mERROR\u001b[0m failed\n`);
});

test("a text of another host neither ends its line nor controls the terminal", () => {
  const hostile = "a\n\u001b[2J\u009b1m\u202eb";
  const text = shown({ reason: hostile, [hostile]: 1, msg: hostile, err: { stack: `${hostile}\r\nnext` } });
  expect(text.split("\n").map((line) => line.trim())).toHaveLength(5);
  expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u);
});

test.each(["json", "text"] as const)("a key is scrubbed from a log in %s", (format) => {
  const key = mintKeyToken().reveal();
  let written = "";
  const log = createLog({ level: "info", name: "test", format, write: (line) => void (written += line) });
  log.info({ key, header: `Bearer ${key}`, err: new Error(`no ${key}`) }, `with ${key}`);
  log.child({ [key]: 1 }).warn(encodeURIComponent(key).replace("_", "%5F"));
  expect(written).toContain("with [key]");
  expect(written).not.toContain(key.slice(24, 40));
});

test("a log that is no terminal is JSON unless configured", () => {
  let written = "";
  createLog({ level: "info", name: "test", write: (line) => void (written += line) }).info("hello");
  expect(JSON.parse(written)).toMatchObject({ level: 30, msg: "hello" });
});
