import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { codingClients, pathsIn } from "../clients/coding-clients.ts";
import { longScript, longTasks, turns } from "../clients/long-conversation.ts";
import { pictureScript } from "../clients/picture-task.ts";
import { recordedProject, recordingIn } from "../clients/recordings.ts";
import { setRoute } from "../clients/run-client.ts";
import { followScript, type ScriptedStep, thought } from "../clients/scripted-model.ts";
import { spellingScript } from "../clients/spelling-task.ts";
import type { FakeRequest } from "../harness/fake-openai-server.ts";
import type { RecordedRequest, Recording } from "../harness/recording.ts";
import { startStagedVllm, type StagedVllm } from "./staged-vllm.ts";

/** How a stream of each API ends after a success. */
const ends: Readonly<Record<string, RegExp>> = {
  "/v1/chat/completions": /\ndata: \[DONE\]\n\n$/,
  "/v1/responses": /\nevent: response\.completed\ndata: .*\n\n$/,
  "/v1/messages": /\nevent: message_stop\ndata: .*\n\n$/,
};

describe("the recorded traffic of a coding agent is answered to its end:", () => {
  let staged: StagedVllm;
  beforeAll(async () => void (staged = await startStagedVllm({}, { maxModelLen: 200_000 })));
  afterAll(() => staged[Symbol.asyncDispose]());

  async function ask({ method, url, headers, body }: RecordedRequest) {
    const { baseUrl, key } = staged.up.endpoint;
    const response = await fetch(new URL(url, baseUrl), {
      method,
      headers: { ...headers, authorization: `Bearer ${key}` },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const ignored = response.headers.get("x-trunkline-ignored") ?? "";
    return { status: response.status, ignored, text: await response.text() };
  }

  async function replay({ requests }: Recording, script: readonly ScriptedStep[]) {
    staged.answers(followScript(script));
    const answers: string[] = [];
    const ignoredLists: string[] = [];
    for (const request of requests) {
      const { status, ignored, text } = await ask(request);
      expect({ status, text: status === 200 ? "" : text }).toEqual({ status: 200, text: "" });
      ignoredLists.push(ignored);
      const { pathname } = new URL(request.url, "http://gateway");
      if (Reflect.get(Object(request.body), "stream") === true) expect(text).toMatch(ends[pathname] ?? /^$/);
      answers.push(text);
    }
    for (const step of script) {
      const said = "says" in step ? step.says.split(" ")[0] : `"${step.tool}"`;
      expect(answers.join("\n")).toContain(said);
    }
    expect((await staged.up.logLines()).filter(({ level }) => level >= 40)).toEqual([]);
    return { ignored: pathsIn(ignoredLists), prompts: staged.vllm.chats.slice(-requests.length).flatMap(promptOf) };
  }

  const named = codingClients.map((client) => [client.name, client] as const);
  test.each(named)("%s", async (_name, client) => {
    const recording = recordingIn(client, "spelling");
    expect(recording.version).toBe(client.version);
    const { ignored, prompts } = await replay(recording, spellingScript(client, recordedProject));
    expect(ignored).toEqual(client.ignored);
    expect(prompts.at(-1)?.join()).toContain(JSON.stringify({ reasoning_content: thought }).slice(1, -1));
    expectGrowth(prompts);
  });

  test.each(named)("%s in a conversation of thirty turns", async (_name, client) => {
    if (client.knownModel !== undefined) await setRoute(client.knownModel, staged);
    const { prompts } = await replay(recordingIn(client, "story"), longScript(client, recordedProject));
    expect(prompts).toHaveLength(turns);
    const turnsOfStart = client.listsFilesAtStart === true ? turns / longTasks.length : turns;
    for (let first = 0; first < turns; first += turnsOfStart) expectGrowth(prompts.slice(first, first + turnsOfStart));
  });

  test.each(named)("%s with a picture", async (_name, client) => {
    const { prompts } = await replay(recordingIn(client, "picture"), pictureScript(client, recordedProject));
    expect(prompts.at(-1)?.join()).toContain('"url":"data:image/');
  });
});

/** The tools and messages that the runtime was asked with, one text each. Requests beside the task have no tools. */
function promptOf({ body }: FakeRequest): string[][] {
  const { messages, tools } = body as { messages: object[]; tools?: object[] };
  return tools === undefined ? [] : [[tools, ...messages].map((each) => JSON.stringify(each))];
}

/** Each prompt begins with the bytes of the prompt before, so that a runtime finds that one in its cache. */
function expectGrowth(prompts: readonly string[][]): void {
  for (const [place, prompt] of prompts.slice(1).entries()) {
    const before = prompts[place] ?? [];
    expect(prompt.slice(0, before.length)).toEqual(before);
  }
}
