import { z } from "zod";
import { CallsAsText, cutAtStops, offersTools, trimPrefix } from "../adjust-answer.ts";
import { ContextOverflow, estimateTextTokens, estimateTokens, overflowFault } from "../context-overflow.ts";
import { RuntimeConnection } from "../runtime-connection.ts";
import type { ChatRun, CompleteRun, Embeddings, EmbedRun, EmitEvents, Runtime, RuntimeSite } from "../runtime.ts";
import { OllamaCatalogue, type OllamaHost } from "./ollama-catalogue.ts";
import { OllamaAnswer, readOllamaAnswer } from "./ollama-answer.ts";
import { ollamaChatRequest, ollamaTextRequest, prefilledText } from "./ollama-request.ts";
import { ollamaStatusFault } from "./ollama-fault.ts";
import { ollamaManages } from "./ollama-manage.ts";

export const ollamaUrlDefault = "http://127.0.0.1:11434";

/**
 * The number of requests that Ollama runs at once for one model by default (OLLAMA_NUM_PARALLEL). Ollama silently
 * queues more.
 */
const ollamaSlotsDefault = 1;

interface OllamaOptions extends Pick<RuntimeSite, "url" | "apiKey" | "slots"> {
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
  const models = new OllamaCatalogue({ connection, host });

  async function answerOnce(run: ChatRun, emit: EmitEvents): Promise<void> {
    const { model, body, contextWindow, signal, onProgress } = run;
    const entry = await models.find(model, signal);
    const request = ollamaChatRequest({ entry, capabilities: run.capabilities, body });
    if (!entry.loaded) onProgress("loading");
    try {
      const answer = new OllamaAnswer({
        parallelToolCalls: body.parallel_tool_calls ?? true,
        tokensMax: body.max_tokens,
        promptTokens: () => estimateTokens(body),
      });
      // Ollama sends a tool call whole, and nothing while the model writes it.
      const onPiece = (): void => onProgress(body.tools === undefined ? undefined : "prefill");
      const streamed = connection.stream({ path: "/api/chat", body: request, signal });
      await readOllamaAnswer(streamed, { answer, onPiece }, emit);
    } catch (error) {
      if (!(error instanceof ContextOverflow)) throw error;
      throw overflowFault(error, { param: "messages", contextWindow, estimatedTokens: estimateTokens(body) });
    }
  }

  /** Runs one chat, and adapts Ollama's answer to the request. */
  function chat(run: ChatRun, emit: EmitEvents): Promise<void> {
    const calls = offersTools(run.body) ? undefined : new CallsAsText();
    return trimPrefix(
      prefilledText(run.body),
      (emitAnswer) => answerOnce(run, emitAnswer),
      calls === undefined ? emit : (events) => emit(calls.push(events)),
    );
  }

  return {
    name: "ollama",
    origin: connection.origin,
    slots: options.slots ?? ollamaSlotsDefault,
    slotsPerModel: true,
    catalogue: (signal) => models.read(signal),
    chat,
    complete: (run, emit) => ollamaText({ run, connection, models }, emit),
    embed: (run) => ollamaEmbed({ run, connection, models }),
    manages: ollamaManages({ connection, models }),
    close: () => connection.close(),
  };
}

function connect({ url, apiKey }: Pick<RuntimeSite, "url" | "apiKey">): RuntimeConnection {
  return new RuntimeConnection({ url, apiKey, faultOf: ollamaStatusFault });
}

/** Continues one text on `/api/generate`. */
async function ollamaText(
  {
    run,
    connection,
    models,
  }: { readonly run: CompleteRun; readonly connection: RuntimeConnection; readonly models: OllamaCatalogue },
  emit: EmitEvents,
): Promise<void> {
  const { body, contextWindow, signal, onProgress } = run;
  const entry = await models.find(run.model, signal);
  const request = ollamaTextRequest(entry, body);
  const estimatedTokens = estimateTextTokens(body.prompt);
  if (!entry.loaded) onProgress("loading");
  const answer = new OllamaAnswer({
    parallelToolCalls: false,
    tokensMax: body.max_tokens,
    promptTokens: () => estimatedTokens,
  });
  const readInto = (emitAnswer: EmitEvents): Promise<void> => {
    const streamed = connection.stream({ path: "/api/generate", body: request, signal });
    return readOllamaAnswer(streamed, { answer, onPiece: () => onProgress(), asInChats }, emitAnswer);
  };
  try {
    if (entry.show.isMlx) await cutAtStops({ stop: body.stop, estimatedTokens }, readInto, emit);
    else await readInto(emit);
  } catch (error) {
    if (!(error instanceof ContextOverflow)) throw error;
    throw overflowFault(error, { param: "prompt", contextWindow, estimatedTokens });
  }
}

/**
 * Converts a line to the form of a chat. Reasoning that Ollama still separated becomes text: no client asked for
 * reasoning.
 */
function asInChats(line: unknown): unknown {
  if (typeof line !== "object" || line === null) return line;
  const { response, thinking, ...rest }: Readonly<Record<string, unknown>> = { ...line };
  const content = typeof thinking === "string" && typeof response === "string" ? thinking + response : response;
  return { ...rest, message: { content } };
}

const embedAnswer = z.object({
  embeddings: z.array(z.array(z.number())),
  prompt_eval_count: z.int().nonnegative().nullish(),
});

/** Embeds texts on `/api/embed`. A text that is too long is refused. By default Ollama would cut it silently. */
async function ollamaEmbed(options: {
  readonly run: EmbedRun;
  readonly connection: RuntimeConnection;
  readonly models: OllamaCatalogue;
}): Promise<Embeddings> {
  const { run, connection, models } = options;
  const { body, signal, onProgress } = run;
  const { name, loaded } = await models.find(run.model, signal);
  if (!loaded) onProgress("loading");
  const { input, dimensions } = body;
  const question = { model: name, input, dimensions, truncate: false };
  const answer = await connection
    .ask(embedAnswer, { path: "/api/embed", body: question, signal })
    .catch((error: unknown) => {
      if (!(error instanceof ContextOverflow)) throw error;
      const estimatedTokens = Math.max(...input.map(estimateTextTokens));
      throw overflowFault(error, { param: "input", contextWindow: run.contextWindow, estimatedTokens });
    });
  return { vectors: answer.embeddings, promptTokens: answer.prompt_eval_count ?? 0 };
}
