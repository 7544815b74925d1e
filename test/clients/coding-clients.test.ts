import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codingClients } from "./coding-clients.ts";
import { closings, longScript, longTasks, longTexts, turns } from "./long-conversation.ts";
import { picture, pictureClosing, pictureScript, pictureTask, pictureTexts } from "./picture-task.ts";
import { record, recordedProject } from "./recordings.ts";
import { ClientRun } from "./run-client.ts";
import { closing, count, greeting, ownTexts, spellingScript, task } from "./spelling-task.ts";

/** `npm run test:clients` sets it to `run`, or to `record` to write the recordings anew. */
const lane = process.env["CODING_CLIENTS"];
const timeout = 900_000;

const named = codingClients.map((client) => [client.name, client] as const);
describe.skipIf(lane === undefined).each(named)("%s", (_name, client) => {
  let run: ClientRun;
  let ended: Awaited<ReturnType<ClientRun["give"]>>;
  beforeAll(async () => {
    run = await ClientRun.prepare(client);
    await writeFile(join(run.place.project, "greeting.txt"), greeting.before);
    run.follow(spellingScript(client, run.place.project));
    ended = await run.give(task);
  }, timeout);
  afterAll(() => run?.[Symbol.asyncDispose]());

  test("reads a file, edits it, runs a command and prints how it ended", async () => {
    expect(ended).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(closing) });
    expect(await readFile(join(run.place.project, "greeting.txt"), "utf8")).toBe(greeting.after);
    expect(await readFile(join(run.place.project, "words.txt"), "utf8")).toBe(count);
    expect(JSON.stringify(run.staged.asked()["messages"])).toContain(count.trim());
  });

  test("sends nothing that the gateway refuses, and only what is known to be ignored", async () => {
    expect(await run.complaints()).toEqual([]);
    expect(run.ignored).toEqual(client.ignored);
  });

  test.runIf(lane === "record")("is recorded", () => {
    record(client, "spelling", { run, script: spellingScript(client, recordedProject), own: ownTexts });
  });
});

describe.skipIf(lane === undefined).each(named)("%s in a conversation of thirty turns", (_name, client) => {
  test("does its tasks one after another, and the gateway refuses nothing", { timeout }, async () => {
    await using run = await ClientRun.prepare(client, client.knownModel);
    run.follow(longScript(client, run.place.project));
    for (const [place, each] of longTasks.entries()) {
      const ended = await run.give(each, { goesOn: place > 0 });
      expect(ended).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(closings[place] ?? "") });
    }
    expect(await readFile(join(run.place.project, "chapter-9.txt"), "utf8")).toContain("hat was found");
    const turnsTaken = run.recorder.exchanges.filter(({ body }) => Object.hasOwn(Object(body), "tools"));
    expect(turnsTaken).toHaveLength(turns);
    expect(await run.complaints()).toEqual([]);
    if (lane === "record")
      record(client, "story", { run, script: longScript(client, recordedProject), own: longTexts });
  });
});

describe.skipIf(lane === undefined).each(named)("%s with a picture", (_name, client) => {
  test("shows it to the model, and the gateway refuses nothing", { timeout }, async () => {
    await using run = await ClientRun.prepare(client);
    await writeFile(join(run.place.project, "picture.png"), Buffer.from(picture, "base64"));
    run.follow(pictureScript(client, run.place.project));
    const ended = await run.give(pictureTask);
    expect(ended).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(pictureClosing) });
    expect(JSON.stringify(run.staged.asked()["messages"])).toContain('"url":"data:image/');
    expect(await run.complaints()).toEqual([]);
    const script = pictureScript(client, recordedProject);
    if (lane === "record") record(client, "picture", { run, script, own: pictureTexts });
  });
});
