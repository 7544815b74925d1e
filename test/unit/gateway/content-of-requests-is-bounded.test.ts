import { expect, test } from "vitest";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { capturingBytesMax, RequestContent } from "../../../services/gateway/capture/request-content.ts";
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
  const content = new RequestContent({ heldBytes: 0 });
  expect(content.json()).toBeUndefined();
  content.asks(asked);
  content.begins();
  content.delivers([{ kind: "text", text: "lost" }]);
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
});

test("the content of a request is bounded in parts, for machines that begin calls without end", () => {
  const content = new RequestContent({ heldBytes: 0 });
  content.asks(asked);
  for (let index = 0; index < 5_000; index += 1) content.delivers([{ kind: "tool-call-start", index, name: "" }]);
  expect(parsed(content)).toMatchObject({ cut: true, answer: { length: 1_001 } });
});
