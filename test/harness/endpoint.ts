import { z } from "zod";
import { EventStream } from "./event-stream.ts";
import { until } from "./until.ts";

/** An error of either outer API: that of Anthropic's clients says of itself that it is one, and names its request. */
const faultBody = z.strictObject({
  type: z.literal("error").optional(),
  request_id: z.string().optional(),
  error: z.strictObject({
    message: z.string().min(1),
    type: z.string(),
    param: z.string().nullable(),
    code: z.string().nullable(),
    details: z.looseObject({}).optional(),
  }),
});
export type ErrorTold = z.infer<typeof faultBody>["error"];

/** An error for a client of Ollama's, which has its message alone; the key's `status` is the same message again. */
const ollamaFaultBody = z.strictObject({
  error: z.string().min(1),
  status: z.string().min(1).optional(),
  param: z.string().nullable(),
  code: z.string().nullable(),
});
const anyFault = z.union([
  faultBody.transform(({ error }) => error),
  ollamaFaultBody.transform(({ error: message, param, code }): ErrorTold => ({ message, type: "", param, code })),
]);

const modelList = z.strictObject({ object: z.literal("list"), data: z.array(z.looseObject({ id: z.string() })) });
const completion = z.looseObject({
  choices: z.tuple([z.looseObject({ message: z.looseObject({ content: z.string().nullable() }) })]),
});

/** A chat request by its fields; `says` is short for one message of the user. */
export interface ChatFields {
  readonly model: string;
  readonly says?: string;
  readonly [field: string]: unknown;
}

export interface ModelsTold {
  readonly status: number;
  readonly ids: readonly string[];
  readonly code: string | null | undefined;
  /** Machines that did not answer in time. */
  readonly unanswered: string | null;
}

/** The parts of a request beside its key, path and body. */
export interface Sending {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Trunkline as a client with a key sees it. */
export class Endpoint {
  /** With `/v1` at its end; the admin API, for an admin key, is at `<operationsUrl>/admin/v1`. */
  readonly baseUrl: string;
  readonly key: string;

  constructor({ baseUrl, key }: { baseUrl: string; key: string }) {
    this.baseUrl = baseUrl;
    this.key = key;
  }

  withKey(key: string): Endpoint {
    return new Endpoint({ baseUrl: this.baseUrl, key });
  }

  /** The same key at another gateway. */
  at(baseUrl: string): Endpoint {
    return new Endpoint({ baseUrl, key: this.key });
  }

  get(path: string): Promise<Response> {
    return this.send("GET", path);
  }

  post(path: string, body: object, sending?: Sending): Promise<Response> {
    return this.send("POST", path, body, sending);
  }

  /** Sends a form as it is, and any other body as JSON. A path that is a whole URL replaces the base URL. */
  send(method: string, path: string, body?: object, { headers, signal }: Sending = {}): Promise<Response> {
    const isJson = body !== undefined && !(body instanceof FormData);
    return fetch(path.includes("://") ? path : this.baseUrl + path, {
      method,
      headers: {
        authorization: `Bearer ${this.key}`,
        ...(isJson && { "content-type": "application/json" }),
        ...headers,
      },
      ...(body !== undefined && { body: isJson ? JSON.stringify(body) : body }),
      ...(signal && { signal }),
    });
  }

  /** Resolves when these models are listed. */
  async untilListed(...models: readonly string[]): Promise<void> {
    const isListed = async (): Promise<boolean> => {
      const { ids } = await this.models();
      return models.every((model) => ids.includes(model));
    };
    await until(isListed, { what: `${models.join(", ")} to be listed`, timeoutMs: 15_000 });
  }

  async models(): Promise<ModelsTold> {
    const response = await this.get("/models");
    const { status } = response;
    const unanswered = response.headers.get("x-trunkline-unanswered");
    if (status !== 200) return { status, ids: [], code: (await errorOf(response)).code, unanswered };
    const { data } = modelList.parse(await response.json());
    return { status, ids: data.map(({ id }) => id), code: undefined, unanswered };
  }

  /** The models once the key is judged: a Redis on a busy machine may be later than a gateway waits for it. */
  judged(): Promise<ModelsTold> {
    const judged = async (): Promise<ModelsTold | false> => {
      const models = await this.models();
      return models.code !== "auth_unavailable" && models;
    };
    return until(judged, { what: "the key to be judged" });
  }

  chat({ says, ...fields }: ChatFields, signal?: AbortSignal): Promise<Response> {
    const messages = says === undefined ? {} : { messages: [{ role: "user", content: says }] };
    return this.post("/chat/completions", { ...messages, ...fields }, { signal });
  }

  embed(fields: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<Response> {
    return this.post("/embeddings", fields, { signal });
  }

  rerank(fields: Readonly<Record<string, unknown>>): Promise<Response> {
    return this.post("/rerank", fields);
  }

  /** A whole answer's text, or an error that says what came instead. */
  async answer(fields: ChatFields): Promise<string> {
    const response = await this.chat(fields);
    const text = await response.text();
    if (response.status !== 200) throw new Error(`the chat ended with ${response.status}: ${text}`);
    return completion.parse(JSON.parse(text)).choices[0].message.content ?? "";
  }

  /** Opens a stream, which is read at once and goes on being read. */
  async stream(fields: ChatFields, signal?: AbortSignal): Promise<EventStream> {
    const response = await this.chat({ ...fields, stream: true }, signal);
    if (response.status !== 200) throw new Error(`the stream began with ${response.status}: ${await response.text()}`);
    return new EventStream(response);
  }
}

/** The error of a response, which must have exactly the four keys of the contract. */
export async function errorOf(response: Response): Promise<ErrorTold> {
  return faultBody.parse(await response.json()).error;
}

/** The error of a response with its status, which no error has. */
export async function refusalOf(asked: Response | Promise<Response>): Promise<ErrorTold & { readonly status: number }> {
  const response = await asked;
  return { status: response.status, ...(await errorOf(response)) };
}

/** The error that an event inside a stream tells. */
export function errorIn(event: string): ErrorTold {
  return anyFault.parse(JSON.parse(event));
}
