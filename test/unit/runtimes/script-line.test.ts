import { expect, test } from "vitest";
import type { Fault } from "#shared/fault/fault.ts";
import { readScript } from "../../../services/agent/runtimes/scripted/scripted-answer.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

const refusalOf = (message: string): Fault => faultThrownBy(() => readScript(message));

test("a script line is read from the beginning of a message, up to its first line break", () => {
  const script = readScript(
    '/script tokens=200 delay_ms=20 nonce=abc first_ms=5 tool=f args={"a":1}\r\ntokens=7 and more',
  );
  expect(script).toMatchObject({ tokens: 200, delayMs: 20, nonce: "abc", firstMs: 5, tool: "f", args: '{"a":1}' });
});

test("a script line needs no slash before one of its words, since some clients take the slash for a command of their own", () => {
  expect(readScript("script tokens=7 nonce=abc\nmore")).toMatchObject({ tokens: 7, nonce: "abc" });
  expect(refusalOf("script tokens=x").message).toContain("'tokens' must be a whole number");
});

test.each([
  "Hello",
  " /script",
  "say /script tokens=3",
  "/scripted tokens=3",
  "/scrip",
  "",
  "script",
  "script me a play",
  "script play=3",
  "scripts tokens=3",
])("a script line is none when the message begins otherwise: %j", (message) => {
  expect(readScript(message)).toBeUndefined();
});

test.each([
  ["/script speed=3", "'speed' is not one of tokens, nonce,"],
  ["/script tokens", "'tokens' needs a value"],
  ["/script tokens=3 tokens=4", "'tokens' comes twice"],
  ["/script tokens=1000001", "'tokens' must be a whole number from 0 to 1000000"],
  ["/script tokens=-1", "'tokens' must be a whole number"],
  ["/script tokens=1e3", "'tokens' must be a whole number"],
  ["/script delay_ms=60001", "'delay_ms' must be a whole number from 0 to 60000"],
  ["/script first_ms=600001", "'first_ms' must be a whole number from 0 to 600000"],
  ["/script think=1000001", "'think' must be a whole number from 0 to 1000000"],
  ["/script tokens=5 fail_at=6", "'fail_at' must be a whole number from 0 to 5, which is the number of tokens"],
  ["/script nonce=a/b", "'nonce' must be 1 to 64 letters, digits, underscores or hyphens"],
  ["/script tool=f args=[1]", "'args' must be a JSON object"],
  ["/script tool=f args={oops", "'args' must be a JSON object"],
  ["/script args={}", "'args' needs 'tool' beside it"],
])("a script line that does not work is refused with the word and its limits: %s", (line, problem) => {
  const fault = refusalOf(line);
  expect(fault).toMatchObject({ code: "invalid_value", param: "messages" });
  expect(fault.message).toContain(problem);
});
