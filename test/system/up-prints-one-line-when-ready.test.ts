import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { anywhere, demonstration, readyIn, startUp } from "../harness/start-trunkline.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";
import { until } from "../harness/until.ts";

test("with --json the line of a ready up is all that standard output ever holds", async () => {
  await using up = await startUp();
  const { endpoint, runtime } = up;
  expect(runtime).toBe("scripted");
  expect(await endpoint.answer({ model: "scripted", says: "/script tokens=2 nonce=abc" })).toBe("abc-0 abc-1 ");
  expect((await endpoint.withKey("nonsense").models()).status).toBe(401);
  expect(await up.terminate()).toBe(0);
  const line = `${JSON.stringify({ base_url: endpoint.baseUrl, api_key: endpoint.key, runtime })}\n`;
  expect(await up.stdout()).toBe(line);
});

test("the first start makes pepper and key for their owner alone, and later starts keep them", async () => {
  const folder = folderOfTest();
  const stateDir = join(folder, "below", "state");
  const keys: string[] = [];
  for (let start = 0; start < 3; start += 1) {
    await using up = await startUp({ TRUNKLINE_STATE_DIR: stateDir });
    expect((await up.endpoint.models()).status).toBe(200);
    keys.push(up.endpoint.key);
    expect(await up.terminate()).toBe(0);
  }
  expect(new Set(keys).size).toBe(1);

  const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8);
  expect(await modeOf(stateDir)).toBe("700");
  const files = await readdir(stateDir);
  expect(files).toEqual(expect.arrayContaining(["key", "pepper"]));
  for (const file of files) expect([file, await modeOf(join(stateDir, file))]).toEqual([file, "600"]);
});

/** Starts `trunkline up` as a person does, who sets no level for the log. */
async function startUpAsAPerson(format: "json" | "text", ...options: readonly string[]) {
  const settings = { ...anywhere, ...demonstration, TRUNKLINE_LOG_LEVEL: "", TRUNKLINE_LOG_FORMAT: format };
  const up = await TrunklineProcess.start({ args: ["up", "--json", ...options], settings });
  const [line] = await up.printed(/^.*\n/);
  return { up, endpoint: readyIn(line).endpoint };
}

test("a request, a refused one and a cancelled one each show as one row with model, machine, tokens and times", async () => {
  const { up, endpoint } = await startUpAsAPerson("text");
  await using _ = up;
  await endpoint.answer({ model: "scripted", says: "/script tokens=3" });
  await endpoint.withKey("nonsense").models();
  await endpoint.chat({ model: "not-here", messages: [{ role: "user", content: "Hello" }] });
  const leave = new AbortController();
  const long = { model: "scripted", stream: true, messages: [{ role: "user", content: "/script tokens=9000" }] };
  const stream = await endpoint.chat(long, leave.signal);
  await stream.body?.getReader().read();
  leave.abort();
  const all = async (): Promise<string[] | false> => {
    const lines = (await up.stderr()).trim().split("\n");
    return lines.length === 5 && lines;
  };
  const rows = await until(all, { what: "the headings and four rows" });
  const [headings, ...requests] = rows.map((row) => row.split(/ {2,}/));
  expect(headings).toEqual(["time", "status", "model", "machine", "prompt", "answer", "first", "total"]);
  const [time, machine, count, seconds] = [/^\d\d:\d\d:\d\d$/, /^.{1,10}$/, /^[\d,]+$/, /^\d+\.\d\d s$/].map(
    (pattern) => expect.stringMatching(pattern),
  );
  expect(requests).toEqual([
    [time, "200", "scripted", machine, count, "3", seconds],
    [time, "401", "GET /v1/models", "key_invalid", seconds],
    [time, "404", "not-here", "model_not_found", seconds],
    [time, "200", "scripted", machine, count, count, seconds, seconds, "client_closed"],
  ]);
});

test("requests are lines of JSON where no person reads them, and --quiet shows none", async () => {
  for (const [options, shown] of [
    [[], 1],
    [["--quiet"], 0],
  ] as const) {
    const { up, endpoint } = await startUpAsAPerson("json", ...options);
    await using _ = up;
    await endpoint.answer({ model: "scripted", says: "/script tokens=3" });
    expect(await up.terminate()).toBe(0);
    const requests = (await up.logLines()).filter(({ msg }) => msg === "request");
    const expected = { model: "scripted", status: 200, completionTokens: 3 };
    expect(requests).toEqual(Array.from({ length: shown }, () => expect.objectContaining(expected)));
  }
});

test("a command whose output is closed, as by head, ends without an error", async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../../services/cli/main.ts"), "--help"]);
  child.stdout.destroy();
  const [said, [exitCode]] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect([exitCode, said]).toEqual([0, ""]);
});
