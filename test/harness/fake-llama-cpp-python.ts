import type { ServerResponse } from "node:http";
import { FakeOpenAiServer, sendJson, type Exchange } from "./fake-openai-server.ts";
import { otherForm } from "./fake-other-server.ts";

/** Characters that fit into the window of the one model. */
export const windowCharacters = 1_000;

/**
 * The server of llama-cpp-python as version 0.3.36 behaves. It works on one request at a time, and a stream ends with
 * `[DONE]` and no finish reason as soon as another request comes. A stream has status 200 before its prompt is read.
 */
export class FakeLlamaCppPython extends FakeOpenAiServer {
  #streaming: ServerResponse | undefined;

  static start(): Promise<FakeLlamaCppPython> {
    return new FakeLlamaCppPython().listen();
  }

  protected override answer(exchange: Exchange): void | Promise<void> {
    const { request, response, route } = exchange;
    if (route !== "GET /v1/models" && route !== "POST /v1/chat/completions") {
      return sendJson(response, 404, { detail: "Not Found" });
    }
    if (this.#streaming?.writableEnded === false) this.#streaming.end("data: [DONE]\n\n");
    if (route === "GET /v1/models") {
      const data = [{ id: "tiny.gguf", object: "model", owned_by: "me", permissions: [] }];
      return sendJson(response, 200, { object: "list", data });
    }
    const { messages, stream, response_format: format } = request.body;
    const quoted = JSON.stringify(messages);
    if (JSON.stringify(format)?.includes("json_schema")) {
      const message =
        "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input " +
        `should be 'text' or 'json_object'", 'input': 'json_schema'}\n  POST /v1/chat/completions`;
      return sendJson(response, 500, { error: { message, type: "internal_server_error", param: null, code: null } });
    }
    if (quoted.length > windowCharacters) {
      if (stream === true) return void response.writeHead(200, { "content-type": "text/event-stream" }).end();
      const message =
        `This model's maximum context length is ${windowCharacters} tokens. However, you requested ` +
        `${quoted.length + 1} tokens (${quoted.length} in the messages, 1 in the completion). Please reduce it.`;
      const error = { message, type: "invalid_request_error", param: "messages", code: "context_length_exceeded" };
      return sendJson(response, 400, { error });
    }
    this.#streaming = response;
    return this.chat(exchange, { form: otherForm, model: "tiny.gguf" });
  }
}
