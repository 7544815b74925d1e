import { FakeOpenAiServer, sendJson, type Exchange } from "./fake-openai-server.ts";
import {
  llamaEmbed,
  llamaError,
  llamaForm,
  llamaProps,
  llamaRefusal,
  llamaSlots,
  llamaTextForm,
  llamaTextRefusal,
  type FakeLlamaModel,
} from "./fake-llama-server.ts";

export interface FakeRoutedModel extends FakeLlamaModel {
  readonly status?: "unloaded" | "loading" | "loaded" | "sleeping" | "downloading";
  /** How its own server would be started. */
  readonly args?: readonly string[];
}

/** llama-server that was started without a model, over real HTTP: a router for many, each with a server of its own. */
export class FakeLlamaRouter extends FakeOpenAiServer {
  models: readonly FakeRoutedModel[];

  private constructor(models: readonly FakeRoutedModel[]) {
    super();
    this.models = models;
  }

  static start(options: { models: readonly FakeRoutedModel[]; port?: number }): Promise<FakeLlamaRouter> {
    return new FakeLlamaRouter(options.models).listen(options.port);
  }

  /** Says of a model what it is at. */
  tell(name: string, status: NonNullable<FakeRoutedModel["status"]>): void {
    this.models = this.models.map((model) => (model.name === name ? { ...model, status } : model));
  }

  protected override answer(exchange: Exchange): void | Promise<void> {
    const { response, route } = exchange;
    switch (route) {
      case "GET /health":
        return sendJson(response, 200, { status: "ok" });
      case "GET /v1/models":
      case "GET /models":
        return sendJson(response, 200, { object: "list", data: this.models.map(entryOf) });
      case "GET /props":
        return this.#props(exchange);
      case "GET /slots":
        return this.#ofModel(exchange, (model) => sendJson(response, 200, llamaSlots(model, this.atWork)));
      case "POST /models/load":
      case "POST /models/unload":
        return this.#move(exchange);
      case "POST /v1/chat/completions":
        return this.#ofModel(exchange, (model) => this.#chat(exchange, model));
      case "POST /v1/completions":
        return this.#ofModel(exchange, (model) => this.#text(exchange, model));
      case "POST /v1/embeddings":
        return this.#ofModel(exchange, (model) => llamaEmbed(exchange, model));
      default:
        return sendJson(response, 404, { error: llamaError(404, "File Not Found") });
    }
  }

  #props(exchange: Exchange): void | Promise<void> {
    const { request, response } = exchange;
    if (request.query.has("model")) {
      return this.#ofModel(exchange, (model) => sendJson(response, 200, llamaProps(model, { sleeping: false })));
    }
    const settings = { default_generation_settings: { params: null, n_ctx: 0 } };
    const of = { model_alias: "llama-server", model_path: "none", build_info: "b11669-v0.7.0" };
    return sendJson(response, 200, { role: "router", max_instances: 4, models_autoload: true, ...of, ...settings });
  }

  #chat(exchange: Exchange, model: FakeLlamaModel): void | Promise<void> {
    const refusal = llamaRefusal(exchange, model);
    if (refusal !== undefined) return sendJson(exchange.response, refusal.code, { error: refusal });
    return this.chat(exchange, { form: llamaForm, model: model.name });
  }

  #text(exchange: Exchange, model: FakeLlamaModel): void | Promise<void> {
    const refusal = llamaTextRefusal(exchange, model);
    if (refusal !== undefined) return sendJson(exchange.response, refusal.code, { error: refusal });
    return this.text(exchange, { form: llamaTextForm, model: model.name });
  }

  /** Asking for a model loads it, unless the question says otherwise. */
  #ofModel(exchange: Exchange, then: (model: FakeRoutedModel) => void | Promise<void>): void | Promise<void> {
    const { request, response } = exchange;
    const name = request.query.get("model") ?? String(request.body["model"]);
    const model = this.models.find((each) => each.name === name);
    if (model === undefined) return sendJson(response, 404, { error: llamaError(404, `model '${name}' not found`) });
    if (model.status !== "loaded") {
      const mayLoad = request.query.get("autoload") !== "false";
      if (!mayLoad) return sendJson(response, 400, { error: llamaError(400, "model is not loaded") });
      this.tell(name, "loaded");
    }
    return then(model);
  }

  #move({ request, response, route }: Exchange): void {
    const name = String(request.body["model"]);
    const model = this.models.find((each) => each.name === name);
    if (model === undefined) return sendJson(response, 404, { error: llamaError(404, "model not found") });
    const loads = route.endsWith("/load");
    if (loads === (model.status === "loaded")) {
      const message = loads ? "model is already loaded" : "model is not loaded";
      return sendJson(response, 400, { error: llamaError(400, message) });
    }
    this.tell(name, loads ? "loading" : "unloaded");
    sendJson(response, 200, { success: true });
  }
}

function entryOf({ name, modelPath, status = "unloaded", args }: FakeRoutedModel): object {
  return {
    id: name,
    object: "model",
    owned_by: "llamacpp",
    created: Math.floor(Date.now() / 1_000),
    in_cache: false,
    path: modelPath ?? `/models/${name}.gguf`,
    status: { value: status, args: args ?? ["llama-server", "--alias", name] },
  };
}
