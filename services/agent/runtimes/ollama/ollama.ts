import { z } from "zod";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { ManageProgress } from "#shared/protocol/job-bodies.ts";
import { cutAtStops, prefilledText, trimPrefix } from "../adjust-answer.ts";
import { tellOverflow } from "../runtime-faults.ts";
import { readStream } from "../runtime-answer.ts";
import { jsonLines, OllamaAnswer, ollamaStatusFault } from "./ollama-answer.ts";
import { RuntimeConnection } from "../runtime-connection.ts";
import type {
  ChatRun,
  CompleteRun,
  Embeddings,
  EmbedRun,
  EmitEvents,
  ManageRun,
  Runtime,
  RuntimeSite,
} from "../runtime.ts";
import { OllamaCatalogue, type OllamaHost } from "./ollama-catalogue.ts";
import { prefillAsText } from "./ollama-prefill.ts";
import { ollamaChatRequest, ollamaTextRequest } from "./ollama-request.ts";

export const ollamaUrlDefault = "http://127.0.0.1:11434";

/**
 * The number of requests that Ollama runs at once for one model by default (OLLAMA_NUM_PARALLEL). Ollama silently
 * queues more.
 */
const ollamaSlotsDefault = 1;

interface OllamaOptions extends Pick<RuntimeSite, "url" | "apiKey" | "slots" | "log"> {
  /** The host that Ollama runs on; this one by default. */
  readonly host?: Partial<OllamaHost> | undefined;
}

export type OllamaRuntime = Runtime & Required<Pick<Runtime, "close" | "complete" | "embed" | "manages">>;

/** Returns the Ollama at a site, or undefined when another service answers there. */
export async function recogniseOllama(site: RuntimeSite, signal: AbortSignal): Promise<Runtime | undefined> {
  const connection = connect(site);
  try {
    await connection.ask(z.object({ version: z.string() }), { path: "/api/version", signal });
    return ollamaRuntime(site);
  } catch {
    signal.throwIfAborted();
    return undefined;
  } finally {
    await connection.close();
  }
}

/**
 * Adapts an Ollama through its native API. Unlike its OpenAI-shaped API, the native one reports an error in the middle
 * of an answer.
 */
export function ollamaRuntime(options: OllamaOptions): OllamaRuntime {
  const connection = connect(options);
  const host = { platform: process.platform, arch: process.arch, ...options.host };
  const ollama = { connection, models: new OllamaCatalogue({ connection, host }) };
  return {
    name: "ollama",
    origin: connection.origin,
    get answersNotUtf8() {
      return connection.answersNotUtf8;
    },
    slots: options.slots ?? ollamaSlotsDefault,
    slotsPerModel: true,
    get version() {
      return ollama.models.version;
    },
    catalogue: (signal) => ollama.models.read(signal),
    chat: (run, emit) => ollamaChat(run, ollama, emit),
    complete: (run, emit) => ollamaAnswer(run, ollama, emit),
    embed: (run) => ollamaEmbed(run, ollama),
    manages: ollamaManages(ollama),
    close: () => connection.close(),
  };
}

function connect({ url, apiKey, log }: Pick<RuntimeSite, "url" | "apiKey" | "log">): RuntimeConnection {
  return new RuntimeConnection({ url, apiKey, faultOf: ollamaStatusFault, log });
}

interface Ollama {
  readonly connection: RuntimeConnection;
  readonly models: OllamaCatalogue;
}

/** Answers a chat. One that ends with text of the assistant is continued as a text, if that is possible. */
async function ollamaChat(run: ChatRun, ollama: Ollama, emit: EmitEvents): Promise<void> {
  const { connection, models } = ollama;
  const begun = prefilledText(run.body);
  if (begun === "") return ollamaAnswer(run, ollama, emit);
  const entry = await models.find(run.model, run.signal);
  if (!entry.loaded) run.onProgress("loading");
  const body = await prefillAsText(run, { entry, connection });
  if (body !== undefined) return ollamaAnswer({ ...run, body }, ollama, emit);
  return trimPrefix(begun, (emitAnswer) => ollamaAnswer(run, ollama, emitAnswer), emit);
}

/** Answers a chat on `/api/chat`, or continues a text on `/api/generate`. */
async function ollamaAnswer(
  run: ChatRun | CompleteRun,
  { connection, models }: Ollama,
  emit: EmitEvents,
): Promise<void> {
  const { body, capabilities, traceparent, signal, onProgress } = run;
  const entry = await models.find(run.model, signal);
  const question =
    "messages" in body
      ? { path: "/api/chat", body: ollamaChatRequest(entry, { body, capabilities }), traceparent, signal }
      : { path: "/api/generate", body: ollamaTextRequest(entry, body), traceparent, signal };
  if (!entry.loaded) onProgress("loading");
  // Ollama sends a tool call whole, and nothing while the model writes it.
  const silence = "tools" in body && body.tools !== undefined ? "prefill" : undefined;
  const readInto = async (emitAnswer: EmitEvents): Promise<void> => {
    const answer = new OllamaAnswer(body);
    const events: AnswerEvent[] = [];
    const splitter = jsonLines((line) => void events.push(...answer.events(line)));
    const onPiece = (): void => onProgress(silence);
    await readStream(connection.stream(question), { splitter, events, onPiece }, emitAnswer);
    const rest = answer.end();
    if (rest.length > 0) await emitAnswer(rest);
  };
  try {
    if (entry.show.isMlx) await cutAtStops(body, readInto, emit);
    else await readInto(emit);
  } catch (error) {
    throw tellOverflow(error, run);
  }
}

const embedAnswer = z.object({
  embeddings: z.array(z.array(z.number())),
  prompt_eval_count: z.int().nonnegative().nullish(),
});

/** Embeds texts on `/api/embed`. A text that is too long is refused. By default Ollama would cut it silently. */
async function ollamaEmbed(run: EmbedRun, { connection, models }: Ollama): Promise<Embeddings> {
  const { traceparent, signal, onProgress } = run;
  const { input, dimensions } = run.body;
  const { name, loaded } = await models.find(run.model, signal);
  if (!loaded) onProgress("loading");
  try {
    const body = { model: name, input, dimensions, truncate: false };
    const answer = await connection.ask(embedAnswer, { path: "/api/embed", body, traceparent, signal });
    return { vectors: answer.embeddings, promptTokens: answer.prompt_eval_count ?? 0 };
  } catch (error) {
    throw tellOverflow(error, run);
  }
}

const pullLine = z.object({
  status: z.string().optional(),
  completed: z.int().nonnegative().nullish(),
  total: z.int().nonnegative().nullish(),
  error: z.string().optional(),
});

/** Ollama's `keep_alive` for a model that an operator loaded: it stays until it is unloaded. */
const forGood = -1;

function ollamaManages({ connection, models }: Ollama): NonNullable<Runtime["manages"]> {
  async function pull({ model, signal, onProgress }: ManageRun): Promise<void> {
    let succeeded = false;
    const read = (line: unknown): void => {
      const progress = pullProgress(line);
      succeeded = progress.status === "success";
      onProgress(progress);
    };
    const lines = jsonLines(read);
    const body = connection.stream({ path: "/api/pull", body: { model }, signal });
    await body.read((piece) => {
      lines.push(piece);
      return undefined;
    });
    lines.end();
    if (!succeeded)
      throw new Fault("upstream_error", { message: "The runtime stopped before the model was complete." });
  }

  async function remove({ model, signal, onProgress }: ManageRun): Promise<void> {
    const { name } = await models.find(model, signal);
    await connection.text({ path: "/api/delete", method: "DELETE", body: { model: name }, signal });
    onProgress({ status: "removed" });
  }

  /**
   * Loads or unloads a model. A request without a prompt makes Ollama load it; with a `keep_alive` of 0 Ollama unloads
   * it.
   */
  async function keep({ model, signal, onProgress }: ManageRun, keepAlive: number, status: string): Promise<void> {
    const { name, show } = await models.find(model, signal);
    const [path, nothing] = show.capabilities.completion ? ["/api/generate", {}] : ["/api/embed", { input: [] }];
    await connection.text({ path, body: { model: name, keep_alive: keepAlive, stream: false, ...nothing }, signal });
    onProgress({ status });
  }

  return {
    pull,
    remove,
    load: (run) => keep(run, forGood, "loaded"),
    unload: (run) => keep(run, 0, "unloaded"),
  };
}

function pullProgress(line: unknown): ManageProgress {
  const parsed = pullLine.safeParse(line);
  if (!parsed.success) throw new Fault("upstream_error", { message: "The runtime sent an invalid line." });
  const { status = "", completed, total, error } = parsed.data;
  if (error !== undefined) throw pullFault(error);
  return {
    status: status.slice(0, 500),
    ...(typeof total === "number" && { totalBytes: total, completedBytes: Math.min(completed ?? 0, total) }),
  };
}

function pullFault(error: string): Fault {
  if (/no such host|dial tcp|network is unreachable|connection refused|i\/o timeout|tls: |proxyconnect/i.test(error)) {
    return new Fault("upstream_error", {
      message: "The runtime could not reach its model registry.",
      internal: "the machine cannot reach the registry, or the model's name contains an unknown registry",
    });
  }
  if (/not found|does not exist|manifest unknown/i.test(error)) {
    return new Fault("model_not_found", { message: "The registry has no model with this name.", param: "model" });
  }
  if (/no space left|disk quota|not enough (disk )?space/i.test(error)) {
    const message = "The disk where the runtime keeps its models is full. Remove a model there, or make room.";
    return new Fault("upstream_error", { message, internal: "the disk of the models is full" });
  }
  const message = "The runtime could not pull the model.";
  return new Fault("upstream_error", { message, internal: "its log says why" });
}
