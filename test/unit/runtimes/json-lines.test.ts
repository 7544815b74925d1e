import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonLines } from "../../../services/agent/runtimes/ollama/ollama-answer.ts";
import { runtimeLineBytesMax } from "../../../services/agent/runtimes/runtime-answer.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";
import { completedBy, cutAnywhere } from "./pieces-of-a-body.ts";

const linesOf = (pieces: readonly (string | Uint8Array)[], lineBytesMax?: number): unknown[][] =>
  completedBy((take) => jsonLines(take, lineBytesMax), pieces);

test("JSON lines come as one batch for each piece, empty when a piece completes no line", () => {
  expect(linesOf(['1\n2\n"a', "b", '"\n'])).toEqual([[1, 2], [], ["ab"], []]);
});

test("JSON lines may lack the last newline, and may be empty", () => {
  expect(linesOf(["1\r\n\n  \n2"]).flat()).toEqual([1, 2]);
});

test("JSON lines are the same however the bytes are cut, also within a character", () => {
  const values = [{ text: "grüße 🌍" }, [1, 2], "東京"];
  const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
  fc.assert(
    fc.property(cutAnywhere(bytes), (pieces) => {
      expect(linesOf(pieces).flat()).toEqual(values);
    }),
  );
});

test.each([
  ["within one piece", ['"123456789"\n']],
  ["over several pieces", ['"1234', "5678", '9"\n']],
  ["without an end", ['"1234', "56789"]],
])("JSON lines longer than the limit are refused by its name: %s", (_, pieces) => {
  expect(() => linesOf(pieces, 8)).toThrow("longer than 8 bytes (runtimeLineBytesMax)");
});

test("JSON lines just at the limit are taken", () => {
  expect(linesOf(['"123456"\n'], 8).flat()).toEqual(["123456"]);
  expect(runtimeLineBytesMax).toBeGreaterThan(1024 * 1024);
});

test("JSON lines that are not JSON are a fault that does not repeat them", () => {
  const fault = faultThrownBy(() => linesOf(["secret prompt\n"]));
  expect(fault).toMatchObject({ code: "upstream_error", message: "The runtime sent a line that is not JSON." });
  expect(`${fault.internal} ${String(fault.cause)}`).not.toContain("secret");
});
