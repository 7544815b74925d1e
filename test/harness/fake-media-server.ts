import type { ServerResponse } from "node:http";
import { FakeOpenAiServer, type FakeRequest, sendJson, type Exchange } from "./fake-openai-server.ts";

interface FakeMediaOptions {
  /** The models, and the fields of the list by which the server tells their purpose. */
  readonly models?: readonly Readonly<Record<string, unknown>>[];
  /** True for whisper.cpp's server: it has no list of models, and one model for every name. */
  readonly listless?: boolean;
}

/** A form as a server on FastAPI reads it, by another reader than the gateway's. */
export interface SentForm {
  readonly fields: Readonly<Record<string, string | readonly string[]>>;
  readonly files: Readonly<Record<string, { readonly name: string; readonly type: string; readonly bytes: Buffer }>>;
}

/** The pieces of "Hello there." as the documentations and sources of three servers have them. */
const streams = {
  openai: [
    { type: "transcript.text.delta", delta: "Hello " },
    { type: "transcript.text.delta", delta: "there." },
    {
      type: "transcript.text.done",
      text: "Hello there.",
      usage: { type: "tokens", input_tokens: 14, output_tokens: 4, total_tokens: 18 },
    },
  ],
  vllm: [
    { id: "trsc-1", object: "transcription.chunk", choices: [{ delta: { content: "Hello " }, finish_reason: null }] },
    { id: "trsc-1", object: "transcription.chunk", choices: [{ delta: { content: "there." }, finish_reason: "stop" }] },
    "[DONE]",
  ],
  speaches: [{ text: "Hello " }, { text: "there." }],
} as const;

/** A server of OpenAI's shape for speech and images: speaches, Kokoro-FastAPI, stable-diffusion servers. */
export class FakeMediaServer extends FakeOpenAiServer {
  readonly #models: NonNullable<FakeMediaOptions["models"]>;
  /** The server whose events a streamed transcription has; none streams unless told. */
  streamsAs: keyof typeof streams | undefined;
  /** True for a server that honours `include[]` of a transcription. */
  tellsLogprobs = false;
  /** How it speaks: its media type, and its pieces. */
  onSpeech: (response: ServerResponse, request: FakeRequest) => void | Promise<void> = (response) => {
    response.writeHead(200, { "content-type": "audio/wav" });
    response.write(Buffer.from([82, 73, 70, 70, 0, 255]));
    response.end(Buffer.from([254, 128]));
  };
  /** An answer to every request, in place of the usual one. */
  onAny: ((response: ServerResponse, request: FakeRequest) => void) | undefined;
  /** The bytes of an image that it makes. */
  imageBytes = 12;

  readonly #listless: boolean;

  private constructor({ models = [{ id: "m", owned_by: "someone" }], listless = false }: FakeMediaOptions) {
    super();
    this.#listless = listless;
    this.#models = models;
  }

  static start(options: FakeMediaOptions = {}): Promise<FakeMediaServer> {
    return new FakeMediaServer(options).listen();
  }

  /** The requests about speech and images. */
  get asked(): readonly FakeRequest[] {
    return this.requests.filter(({ path }) => /^\/v1\/(audio|images)\//.test(path));
  }

  protected override async answer(exchange: Exchange): Promise<void> {
    const { request, response, route } = exchange;
    if (this.#listless && route === "GET /health") return sendJson(response, 200, { status: "ok" });
    if (this.#listless && request.path !== "/v1/audio/transcriptions")
      return void response.writeHead(404, { "content-type": "text/plain" }).end(`File Not Found (${request.path})`);
    if (route === "GET /v1/models") {
      const data = this.#models.map((model) => ({ object: "model", ...model, capabilities: undefined }));
      return sendJson(response, 200, { object: "list", data });
    }
    // LocalAI has this list.
    if (route === "GET /v1/models/capabilities" && this.#models.some(({ capabilities }) => capabilities)) {
      return sendJson(response, 200, { object: "list", data: this.#models });
    }
    if (this.onAny !== undefined && request.method === "POST") return this.onAny(response, request);
    switch (route) {
      case "POST /v1/audio/transcriptions":
      case "POST /v1/audio/translations":
        return this.#transcribe(request, response);
      case "POST /v1/audio/speech":
        return this.onSpeech(response, request);
      case "POST /v1/images/generations":
      case "POST /v1/images/edits": {
        const image = Buffer.alloc(this.imageBytes, 7).toString("base64");
        return sendJson(response, 200, { created: 1_795_200_000, data: [{ b64_json: image }] });
      }
      case "POST /v1/moderations": {
        const results = [request.body["input"]].flat().map((text) => ({ flagged: text === "harm" }));
        const isOneMessage = typeof Object(request.body["input"])[0] === "object";
        return sendJson(response, 200, {
          id: "modr-1",
          model: "guard",
          results: isOneMessage ? [{ flagged: true }] : results,
        });
      }
      default:
        return sendJson(response, 404, { detail: "Not Found" });
    }
  }

  async #transcribe(request: FakeRequest, response: ServerResponse): Promise<void> {
    const { fields } = await formOf(request);
    const send = (type: string, body: string): void => void response.writeHead(200, { "content-type": type }).end(body);
    if (fields["stream"] === "true" && this.streamsAs !== undefined) {
      const events = streams[this.streamsAs];
      const written = events.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
      return send("text/event-stream", written.join(""));
    }
    const text = "Hello there.";
    switch (fields["response_format"]) {
      case "text":
        return send("text/plain", text);
      case "srt":
        return send("text/plain", `1\n00:00:00,000 --> 00:00:01,000\n${text}\n\n`);
      case "vtt":
        return send("text/vtt", `WEBVTT\n\n00:00.000 --> 00:01.000\n${text}\n\n`);
      case "verbose_json":
        return sendJson(response, 200, {
          task: "transcribe",
          language: "en",
          duration: 1,
          text,
          segments: [],
          words: [],
        });
      default:
        return sendJson(response, 200, {
          text,
          ...(fields["include[]"] !== undefined &&
            this.tellsLogprobs && { logprobs: [{ token: text, logprob: -0.5 }] }),
          usage: { type: "duration", seconds: 1 },
        });
    }
  }
}

/** Reads the form that a server got. */
export async function formOf({ bytes, headers }: FakeRequest): Promise<SentForm> {
  const form = await new Response(new Uint8Array(bytes), {
    headers: { "content-type": headers["content-type"] ?? "" },
  }).formData();
  const fields: Record<string, string | string[]> = {};
  const files: Record<string, SentForm["files"][string]> = {};
  for (const [name, value] of form) {
    if (typeof value !== "string")
      files[name] = { name: value.name, type: value.type, bytes: Buffer.from(await value.arrayBuffer()) };
    else fields[name] = name.endsWith("[]") ? [...[fields[name] ?? []].flat(), value] : value;
  }
  return { fields, files };
}
