import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { jsonLines } from "../../../services/agent/runtimes/ollama/ollama-answer.ts";
import { runtimeLineBytesMax } from "../../../services/agent/runtimes/runtime-answer.ts";

async function* piecesOf(...pieces: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) yield Buffer.from(piece);
}

/** The values that each piece completes, and those at the end. */
async function batchesOf(pieces: AsyncIterable<Uint8Array>, lineBytesMax?: number) {
  const batches: unknown[][] = [];
  const lines = jsonLines((value) => void batches.at(-1)?.push(value), lineBytesMax);
  for await (const piece of pieces) {
    batches.push([]);
    lines.push(piece);
  }
  batches.push([]);
  lines.end();
  return batches;
}

test("JSON lines come as one batch for each piece, empty when a piece completes no line", async () => {
  expect(await batchesOf(piecesOf('1\n2\n"a', "b", '"\n'))).toEqual([[1, 2], [], ["ab"], []]);
});

test("JSON lines may lack the last newline, and may be empty", async () => {
  expect((await batchesOf(piecesOf("1\r\n\n  \n2"))).flat()).toEqual([1, 2]);
});

test("JSON lines are the same however the bytes are cut, also within a character", async () => {
  const values = [{ text: "grüße 🌍" }, [1, 2], "東京"];
  const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(bytes.length), { maxLength: 8 }), async (cuts) => {
      const ends = [0, ...cuts.sort((a, b) => a - b), bytes.length];
      const pieces = ends.slice(1).map((end, at) => bytes.subarray(ends[at], end));
      expect((await batchesOf(piecesOf(...pieces))).flat()).toEqual(values);
    }),
  );
});

test.each([
  ["within one piece", ['"123456789"\n']],
  ["over several pieces", ['"1234', "5678", '9"\n']],
  ["without an end", ['"1234', "56789"]],
])("JSON lines longer than the limit are refused by its name: %s", async (_, pieces) => {
  const refused = batchesOf(piecesOf(...pieces), 8);
  await expect(refused).rejects.toThrow("longer than 8 bytes (runtimeLineBytesMax)");
});

test("JSON lines just at the limit are taken", async () => {
  expect((await batchesOf(piecesOf('"123456"\n'), 8)).flat()).toEqual(["123456"]);
  expect(runtimeLineBytesMax).toBeGreaterThan(1024 * 1024);
});

test("JSON lines that came before one that fails are not lost with it", () => {
  const values: unknown[] = [];
  expect(() => jsonLines((value) => values.push(value)).push(Buffer.from("1\n2\noops\n"))).toThrow(Fault);
  expect(values).toEqual([1, 2]);
});

test("JSON lines that are not JSON are a fault that does not repeat them", async () => {
  const fault = Fault.from(await batchesOf(piecesOf("secret prompt\n")).catch((error: unknown) => error));
  expect(fault).toMatchObject({ code: "upstream_error", message: "The runtime sent a line that is not JSON." });
  expect(`${fault.internal} ${String(fault.cause)}`).not.toContain("secret");
});
