import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { RecordedExchange } from "../../harness/recorder.ts";
import { readRecording, recordingOf, writeRecording } from "../../harness/recording.ts";

const folder = mkdtempSync(join(tmpdir(), "trunkline-recording-"));
afterAll(() => rmSync(folder, { recursive: true }));

const prompt = "You are somebody else's agent.\n<env>\n  Folder: /home/jo/tries\n</env>\nBe brief.";
const body = {
  model: "coder",
  messages: [
    { role: "system", content: prompt },
    { role: "user", content: `Mend it. ${prompt}` },
    { role: "assistant", tool_calls: [{ id: "call_1", arguments: '{"path":"/home/jo/tries/a.txt"}' }] },
  ],
  session: "5f0c2f9e-9f0a-4f6e-8f0e-1a2b3c4d5e6f",
};
const exchange: RecordedExchange = {
  method: "POST",
  url: "/v1/chat/completions",
  headers: { authorization: "Bearer trunkline_secret", "user-agent": "agent/1", session: body.session },
  body,
  status: 200,
  answerHeaders: { "x-trunkline-ignored": "session" },
  answer: "",
};
const client = { name: "Agent", version: "1" };
const texts = { own: ["Mend it."], instead: { "/home/jo": "/project" } };

/** Writes a recording of these exchanges and reads it back, with the text of its file. */
function recorded(...exchanges: RecordedExchange[]) {
  const path = join(folder, "recording.jsonl");
  writeRecording(path, recordingOf(client, exchanges, texts));
  return { text: readFileSync(path, "utf8"), requests: readRecording(path).requests };
}

test("a recording has no secret, no prose of a client and no trace of the machine", () => {
  const { text } = recorded(exchange);
  for (const foreign of ["secret", "somebody", "brief", "jo", "5f0c2f9e"]) expect(text).not.toContain(foreign);
});

test("a recording that is read has filler with the lines, the length and the tags of each text", () => {
  const [request] = recorded(exchange).requests;
  const { messages, ...rest } = (request?.body ?? {}) as typeof body;
  const [system, user, assistant] = messages;
  const changed = prompt.replace("/home/jo", "/project");
  expect(system?.content?.split("\n").map(({ length }) => length)).toEqual(
    changed.split("\n").map(({ length }) => length),
  );
  expect(system?.content).toMatch(/^[^\n]+\n<env>\n {2}\S.*\/project.*\n<\/env>\n/);
  expect(user?.content).toMatch(/^Mend it\. /);
  expect(assistant?.tool_calls?.[0]).toEqual({ id: "call_1", arguments: '{"path":"/project/tries/a.txt"}' });
  expect(rest).toEqual({ model: "coder", session: "00000000-0000-0000-0000-000000000001" });
  expect(request?.headers).toEqual({ "user-agent": "agent/1", session: rest.session });
  expect(request).toMatchObject({ method: "POST", url: "/v1/chat/completions" });
});

test("equal lines get equal filler, and a text that comes again is written once", () => {
  const { text, requests } = recorded(exchange, exchange);
  const [first, second] = requests;
  expect(second?.body).toEqual(first?.body);
  const { messages } = (first?.body ?? {}) as typeof body;
  expect(messages[1]?.content?.split("\n").slice(1)).toEqual(messages[0]?.content?.split("\n").slice(1));
  expect(text.length).toBeLessThan(1.3 * recorded(exchange).text.length);
});
