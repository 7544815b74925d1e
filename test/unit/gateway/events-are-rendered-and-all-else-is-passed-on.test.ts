import { expect, test } from "vitest";
import { ChatChunks } from "#shared/answer/chat/chat-chunks.ts";
import type { BeatRow, Usage } from "#shared/protocol/frame-payload.ts";
import type { JobListener } from "../../../services/gateway/dispatch/follow-frames.ts";
import { RenderedEvents } from "../../../services/gateway/dispatch/render-events.ts";

test("what a machine says beside the events of an answer reaches whoever waits for it", () => {
  const heard: unknown[] = [];
  const rendered = new RenderedEvents({
    renderer: new ChatChunks({ id: "chatcmpl-1", createdSeconds: 7, model: "llama3", includeUsage: false }),
    listener: {
      onAccept: (machine) => void heard.push(machine),
      onData: (bytes, outputTokens) => void heard.push([Buffer.from(bytes).includes("Hello"), outputTokens]),
      onUsage: (usage) => void heard.push(usage),
      onTick: (nowMs, row) => void heard.push([nowMs, row]),
    },
    onBroken: (fault) => void heard.push(fault),
  });
  const usage: Usage = { promptTokens: 1, completionTokens: 2 };
  const row: BeatRow = ["job", "queued", 3, 0, 0, 0];
  rendered.onAccept("attic");
  rendered.onTick(5, row);
  rendered.onData(Buffer.from('{"kind":"text","text":"Hello"}\n'), 1);
  rendered.onUsage(usage);
  expect(heard).toEqual(["attic", [5, row], [true, 1], usage]);
});

test("who waits for its client's reading is asked for it, and who gathers the answer is not", () => {
  const head = { id: "chatcmpl-1", createdSeconds: 7, model: "llama3", includeUsage: false };
  const passedOn = (listener: JobListener) =>
    new RenderedEvents({ renderer: new ChatChunks(head), listener, onBroken: () => undefined }).backlogBytes?.();
  const onData = (): void => undefined;
  expect([passedOn({ onData, backlogBytes: () => 5 }), passedOn({ onData })]).toEqual([5, undefined]);
});
