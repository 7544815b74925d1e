import { z } from "zod";
import { CallsAsText, offersTools } from "../calls-as-text.ts";
import { ContextOverflow, estimateTokens, toldOverflow } from "../context-overflow.ts";
import { OllamaCatalogue } from "./ollama-catalogue.ts";
import { OllamaChatAnswer, readOllamaAnswer } from "./ollama-chat-answer.ts";
import { ollamaChatRequest, prefilledText } from "./ollama-chat-request.ts";
import { ollamaEmbed } from "./ollama-embed.ts";
import { ollamaStatusFault } from "./ollama-fault.ts";
import { ollamaManages } from "./ollama-manage.ts";
import type { OllamaHost } from "./ollama-model.ts";
import { ollamaText } from "./ollama-text.ts";
import { trimPrefix } from "../prefix-trimmer.ts";
import { RuntimeConnection } from "../runtime-connection.ts";
import type { RuntimeSite } from "../runtime-site.ts";
import type { ChatRun, EmitEvents, Runtime } from "../runtime.ts";

export const ollamaUrlDefault = "http://127.0.0.1:11434";

/**
 * The number of requests that Ollama runs at once for one model by default (OLLAMA_NUM_PARALLEL). Ollama silently
 * queues more.
 */
const ollamaSlotsDefault = 1;

export interface OllamaOptions extends Pick<RuntimeSite, "url" | "apiKey" | "slots"> {
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
      const answer = new OllamaChatAnswer({
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
      throw toldOverflow(error, { param: "messages", contextWindow, estimatedTokens: estimateTokens(body) });
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
