import { once } from "node:events";
import { createServer } from "node:http";
import { expect, test } from "vitest";
import { startUp } from "../harness/start-trunkline.ts";

const canary = "canary-of-the-runtime";
const headers = {
  "set-cookie": `session=${canary}`,
  "x-request-id": canary,
  "x-ratelimit-limit-requests": canary,
  "retry-after": "7",
  "access-control-allow-origin": canary,
  server: canary,
  location: `http://${canary}`,
};

const models = { object: "list", data: [{ id: "odd", object: "model", created: 1, owned_by: canary }] };
const piece = (choice: object) =>
  `data: ${JSON.stringify({ id: canary, object: "chat.completion.chunk", created: 1, model: canary, choices: [{ index: 0, ...choice }], [canary]: canary })}\n\n`;
const answer = `${piece({ delta: { role: "assistant", content: "fine" }, finish_reason: null })}${piece({ delta: {}, finish_reason: "stop" })}data: [DONE]\n\n`;

test("extra headers and fields of a runtime reach no client", async () => {
  const runtime = createServer((request, response) => {
    request.resume();
    if (request.method === "GET" && request.url === "/v1/models") {
      response.writeHead(200, { ...headers, "content-type": "application/json" }).end(JSON.stringify(models));
    } else if (request.method === "POST" && request.url === "/v1/chat/completions") {
      response.writeHead(200, { ...headers, "content-type": "text/event-stream" }).end(answer);
    } else response.writeHead(404, headers).end();
  });
  runtime.listen(0, "127.0.0.1");
  await once(runtime, "listening");
  const address = runtime.address();
  const port = typeof address === "object" ? address?.port : undefined;
  try {
    await using up = await startUp({
      TRUNKLINE_RUNTIME: "openai",
      TRUNKLINE_RUNTIME_URL: `http://127.0.0.1:${port}`,
    });
    for (const stream of [false, true]) {
      const response = await up.endpoint.chat({ model: "odd", says: "hi", stream });
      const text = await response.text();
      expect([response.status, text]).toEqual([200, expect.stringContaining("fine")]);
      expect(JSON.stringify([...response.headers]) + text).not.toContain(canary);
      expect([response.headers.get("set-cookie"), response.headers.get("retry-after")]).toEqual([null, null]);
    }
  } finally {
    runtime.close();
    runtime.closeAllConnections();
  }
});
