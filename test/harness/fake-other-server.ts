import { type ChatForm, legacyLogprobs, usualEnding, type TextForm } from "./fake-openai-chat.ts";
import { FakeOpenAiServer, sendJson, type Exchange } from "./fake-openai-server.ts";
import { vectorList } from "./fake-vectors.ts";

interface FakeOtherServerOptions {
  readonly models?: readonly string[];
  readonly ownedBy?: string;
  readonly port?: number;
}

/** Any server that answers as OpenAI's does and is none of those with a name. */
export class FakeOtherServer extends FakeOpenAiServer {
  models: readonly string[];
  readonly #ownedBy: string;

  private constructor({ models, ownedBy }: FakeOtherServerOptions) {
    super();
    this.models = models ?? ["other-model"];
    this.#ownedBy = ownedBy ?? "someone";
  }

  static start(options: FakeOtherServerOptions = {}): Promise<FakeOtherServer> {
    return new FakeOtherServer(options).listen(options.port);
  }

  protected override answer(exchange: Exchange): void | Promise<void> {
    const { request, response, route } = exchange;
    const model = String(request.body["model"]);
    switch (route) {
      case "GET /v1/models": {
        const data = this.models.map((id) => ({
          id,
          object: "model",
          created: 1_795_200_000,
          owned_by: this.#ownedBy,
        }));
        // As some do, it has no empty list.
        return sendJson(response, 200, { object: "list", data: data.length === 0 ? null : data });
      }
      case "POST /v1/chat/completions":
        return this.chat(exchange, { form: otherForm, model });
      case "POST /v1/completions":
        return this.text(exchange, { form: otherTextForm, model });
      case "POST /v1/embeddings":
        return sendJson(response, 200, vectorList(request.body, { model }));
      default:
        return sendJson(response, 404, otherForm.error(404, `Invalid URL (${route})`));
    }
  }
}

export const otherForm: ChatForm = {
  opening: { role: "assistant", content: "" },
  reasoning: "reasoning_content",
  ending: {},
  chunk: (model, choices) => ({
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1_795_200_000,
    model,
    choices,
  }),
  choice: ({ index, delta, finishReason }) => ({ index, delta, finish_reason: finishReason }),
  usage: (model, usage) => ({ ...otherForm.chunk(model, []), usage }),
  error: (_, message) => ({ error: { message, type: "invalid_request_error", param: null, code: null } }),
};

const otherTextForm: TextForm = {
  chunk: (model, choices) => ({ id: "cmpl-1", object: "text_completion", created: 1_795_200_000, model, choices }),
  choice: ({ text, finishReason, logprobs }) => ({ text, index: 0, logprobs, finish_reason: finishReason }),
  ending: usualEnding(() => otherTextForm),
  logprobs: legacyLogprobs,
  error: (status, message) => otherForm.error(status, message),
};
