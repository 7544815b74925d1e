import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock as clock } from "#shared/process/clock.ts";
import { LogFile, readableLog, showLogFile } from "../../../../services/cli/service/log-file.ts";
import { until } from "../../../harness/until.ts";
import { folderOfTest } from "../../../harness/temporary-folder.ts";

function log(bytesMax: number) {
  const folder = folderOfTest();
  const path = join(folder, "logs/agent.log");
  return { path, file: new LogFile(path, { bytesMax }) };
}

test("a full log file is put aside, and the one before it is dropped", () => {
  const { path, file } = log(8);
  for (const line of ["one\n", "two\n", "three\n", "four\n", "five\n"]) file.write(line);
  expect(readFileSync(path, "utf8")).toBe("five\n");
  expect(readFileSync(`${path}.1`, "utf8")).toBe("three\nfour\n");
});

test("the size of a log file counts from an earlier start too", () => {
  const { path, file } = log(8);
  file.write("one two\n");
  new LogFile(path, { bytesMax: 8 }).write("three\n");
  expect(readFileSync(path, "utf8")).toBe("three\n");
});

test("the latest lines of a log are shown, then those that come, over a turn of the file", async () => {
  const { path, file } = log(12);
  for (const line of ["one\n", "two\n"]) file.write(line);
  let shown = "";
  const leaving = new AbortController();
  const stdout = { write: (text: string) => (shown += text) };
  const showing = showLogFile(path, { lines: 1, follow: true, signal: leaving.signal }, { stdout, clock });
  await until(() => shown === "two\n", { what: "the latest line" });
  for (const line of ["three\n", "four\n"]) file.write(line);
  await until(() => shown === "two\nthree\nfour\n", { what: "the lines after it" });
  leaving.abort();
  await showing;
});

test("a log that is not there is told", async () => {
  const wanted = { lines: 1, follow: false, signal: new AbortController().signal };
  const shown = showLogFile("/nowhere/agent.log", wanted, { stdout: { write: () => true }, clock });
  await expect(shown).rejects.toThrow("There is no log that can be read");
});

test("a terminal gets the lines of a log as text, however they were cut on their way", () => {
  let shown = "";
  const output = readableLog({ write: (text) => (shown += text) }, { coloured: false });
  const line = JSON.stringify({ level: 30, time: 0, pid: 1, name: "agent", machine: "attic", msg: "agent ready" });
  output.write(`trunkline: no JSON\n${line.slice(0, 20)}`);
  output.write(`${line.slice(20)}\n`);
  expect(shown).toMatch(/^trunkline: no JSON\n[\d:.]+ INFO {2}agent ready machine=attic\n$/);
});
