import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { OpenAiAnswer, readAnswer } from "../../../services/agent/runtimes/openai/openai-answer.ts";
import { otherServer } from "../../../services/agent/runtimes/openai/other-server.ts";
import { emittedBy } from "../../harness/ask-runtime.ts";
import { RuntimeConnection } from "../../../services/agent/runtimes/runtime-connection.ts";

const body = [
  { choices: [{ index: 0, delta: { role: "assistant", content: "Hello" } }] },
  { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
]
  .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
  .join("");

async function nextTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

test("answers that are read one after the other share one connection, also where the body ends after they are complete", async () => {
  const sockets = new Set<Socket>();
  let ending: Promise<void> | undefined;
  const server = createServer((request, answer) => {
    sockets.add(request.socket);
    answer.write(`${body}data: [DONE]\n\n`);
    ending = nextTurns(3).then(() => void answer.end());
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const connection = new RuntimeConnection({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faultOf: () => new Fault("bad_request", { message: "refused" }),
  });
  onTestFinished(async () => {
    await connection.close();
    server.close();
  });
  const answersWanted = 6;
  for (let answers = 0; answers < answersWanted; answers += 1) {
    const served = { profile: otherServer, model: { name: "m" } };
    const answer = new OpenAiAnswer({ messages: [{ role: "user", content: "Hi" }] }, served);
    const question = { path: "/v1/chat/completions", body: {}, signal: new AbortController().signal };
    const run = { contextWindow: 1_000, onProgress: () => undefined };
    const asked = { question, connection, profile: otherServer, run };
    const events = await emittedBy((emit) => readAnswer(answer, asked, emit));
    expect(events).toEqual([
      { kind: "text", text: "Hello" },
      { kind: "finish", reason: "stop" },
    ]);
    await ending;
    await nextTurns(6);
  }
  // A machine that stands still for long enough in between may have one left.
  expect(sockets.size).toBeLessThan(answersWanted / 2);
});
