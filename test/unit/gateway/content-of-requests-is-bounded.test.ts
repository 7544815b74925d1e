import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import {
  capturedBytesMax,
  capturingBytesMax,
  RequestContent,
} from "../../../services/gateway/capture/request-content.ts";
import { hello } from "./chat-requests.ts";

const asked = { kind: "chat", body: encodeJson({ messages: [hello] }) } as const;
const parsed = (content: RequestContent) => JSON.parse(content.json() ?? "");

test("the content of a request is cut where the requests under way hold all memory", () => {
  const room = { heldBytes: capturingBytesMax - 1_000 };
  const content = new RequestContent(room);
  content.asks(asked);
  content.begins();
  content.delivers([{ kind: "text", text: "x".repeat(2_000) }]);
  const { prompt, answer, cut } = parsed(content);
  expect([prompt.messages[0].content, answer[0].text.length < 1_000, cut, room.heldBytes]).toEqual([
    "Hello",
    true,
    true,
    capturingBytesMax,
  ]);
  content.end();
  expect(room.heldBytes).toBe(capturingBytesMax - 1_000);
});

test("the content of a request has the answer of the machine that gave it, and not of one that failed before", () => {
  const room = { heldBytes: 0 };
  const content = new RequestContent(room);
  expect(content.json()).toBeUndefined();
  content.asks(asked);
  content.begins();
  content.delivers([{ kind: "text", text: "lost".repeat(capturedBytesMax) }]);
  content.begins();
  content.delivers([
    { kind: "text", text: "two" },
    { kind: "text", choice: 1, text: "other" },
    { kind: "text", text: " parts" },
  ]);
  expect(parsed(content).answer).toEqual([
    { kind: "text", choice: 0, text: "two parts" },
    { kind: "text", choice: 1, text: "other" },
  ]);
  expect(parsed(content).cut).toBe(false);
  content.end();
  expect(room.heldBytes).toBe(0);
});

test("the content of a request takes about the memory that it is counted with, in however small pieces it comes", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const content = new RequestContent({ heldBytes: 0 });
  content.asks(asked);
  content.begins();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let at = 0; at < 200_000; at += 1) content.delivers([{ kind: "text", text: String(1_000 + (at % 9_000)) }]);
  collect();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(3_000_000);
  expect(parsed(content).answer[0].text).toMatch(/^100010011002/);
  expect(parsed(content).answer[0].text).toHaveLength(800_000);
});

test("the content of a request is bounded in parts, for machines that begin calls without end", () => {
  const content = new RequestContent({ heldBytes: 0 });
  content.asks(asked);
  for (let index = 0; index < 5_000; index += 1) content.delivers([{ kind: "tool-call-start", index, name: "" }]);
  expect(parsed(content)).toMatchObject({ cut: true, answer: { length: 1_001 } });
});

test("the content of a request has texts that look like files, and no image however its type is written", () => {
  const content = new RequestContent({ heldBytes: 0 });
  const url = `DATA:Image/PNG;name=x;base64,${"A".repeat(2_000_000)}`;
  const said = ["data:text/plain;base64,SGVsbG8=", '"url":"data:image/png;base64,A"'];
  content.asks({ kind: "chat", body: encodeJson({ messages: [{ content: [{ image_url: { url } }, ...said] }] }) });
  expect(parsed(content)).toMatchObject({
    cut: false,
    prompt: { messages: [{ content: [{ image_url: { url: `Image/PNG, ${url.length} characters` } }, ...said] }] },
  });
});
