import { checkKey } from "#shared/records/judge-key.ts";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Worker } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { parseKeyToken } from "#shared/keys/key-token.ts";
import { openKeyStore } from "#shared/store/open-key-store.ts";
import { systemClock } from "#shared/process/clock.ts";
import { openStateDatabase, stateFileName } from "#shared/store/state-database.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";

const processes = 6;
const keysEach = 20;

/** What each process does: opens the folder, makes keys, prints them. */
const program = `
  import { issueKey } from "#shared/records/issue-key.ts";
  import { openKeyStore } from "#shared/store/open-key-store.ts";
  import { systemClock } from "#shared/process/clock.ts";
  const { keys, peppers } = await openKeyStore({ stateDir: process.argv[1] }, { clock: systemClock });
  const means = { keys, peppers, clock: systemClock, actor: { by: String(process.pid) } };
  for (let made = 0; made < ${keysEach}; made += 1) {
    const key = { name: "n", scopes: ["*"], ttlMs: 60_000 };
    console.log((await issueKey(key, means)).token.reveal());
  }
  await keys.close();
`;

test("processes that start at once on an absent folder agree on its pepper, and lose none of their keys", async () => {
  const stateDir = join(folderOfTest(), "state");
  const run = () => promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program, stateDir]);
  const outputs = await Promise.all(Array.from({ length: processes }, run));
  const texts = outputs.flatMap(({ stdout }) => stdout.trim().split("\n"));
  expect(texts).toHaveLength(processes * keysEach);

  const { keys, peppers } = await openKeyStore({ stateDir }, { clock: systemClock });
  onTestFinished(() => keys.close());
  const outcomes = texts.map(async (text) => {
    const parsed = parseKeyToken(text);
    if (parsed.outcome !== "parsed") return parsed.outcome;
    return (await checkKey({ token: parsed.token, keys, peppers, nowMs: Date.now() })).outcome;
  });
  expect(new Set(await Promise.all(outcomes))).toEqual(new Set(["valid"]));
  expect(await keys.list()).toHaveLength(texts.length);
  const actors = (await keys.log({ entriesMax: 1_000 })).map(({ by }) => by);
  expect(actors).toHaveLength(texts.length);
  expect(new Set(actors).size).toBe(processes);
});

/** Writes into a file that has no write-ahead log yet, and is done a while after it said so. */
const slowWriter = `
  const { DatabaseSync } = require("node:sqlite");
  const { parentPort, workerData } = require("node:worker_threads");
  const database = new DatabaseSync(workerData, { timeout: 5_000 });
  database.exec("BEGIN IMMEDIATE");
  parentPort.postMessage("writing");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
  database.exec("COMMIT");
  database.close();
`;

test("a process that comes while another one makes the file waits for it", async () => {
  const folder = folderOfTest();
  const stateDir = join(folder, "state");
  await mkdir(stateDir, { mode: 0o700 });
  const writer = new Worker(slowWriter, { eval: true, workerData: join(stateDir, stateFileName) });
  await once(writer, "message");
  openStateDatabase(stateDir).close();
  await once(writer, "exit");
});
