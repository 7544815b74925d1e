import { z } from "zod";
import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { jsonLines } from "./json-lines.ts";
import { OllamaCatalogue } from "./ollama-catalogue.ts";
import { OllamaChatAnswer } from "./ollama-chat-answer.ts";
import { ollamaChatRequest } from "./ollama-chat-request.ts";
import { OllamaConnection } from "./ollama-connection.ts";
import type { OllamaHost } from "./ollama-model.ts";
import type { ChatRun, Runtime } from "./runtime.ts";

export const ollamaUrlDefault = "http://127.0.0.1:11434";

/** As many as Ollama runs at once of one model by default (OLLAMA_NUM_PARALLEL). It queues more without a word. */
const ollamaSlotsDefault = 1;

export interface OllamaOptions {
  readonly url?: string | undefined;
  readonly slots?: number | undefined;
  /** The machine that Ollama runs on; this one unless told. */
  readonly host?: Partial<OllamaHost> | undefined;
}

export interface OllamaRuntime extends Runtime {
  /** Ollama's version. Rejects when what answers is no Ollama. */
  version(signal: AbortSignal): Promise<string>;
  /** Cuts whatever is still open. */
  close(): Promise<void>;
}

/** An Ollama, through its native API: unlike its OpenAI-shaped one, that tells an error in the middle of an answer. */
export function ollamaRuntime(options: OllamaOptions = {}): OllamaRuntime {
  const connection = new OllamaConnection(options.url ?? ollamaUrlDefault);
  const host = { platform: process.platform, arch: process.arch, ...options.host };
  const models = new OllamaCatalogue({ connection, host });

  async function* chat(run: ChatRun): AsyncGenerator<readonly AnswerEvent[]> {
    const { model, body, signal, onProgress } = run;
    const entry = await models.find(model, signal);
    const request = ollamaChatRequest({ id: model, entry, body });
    const answer = new OllamaChatAnswer({ parallelToolCalls: body.parallel_tool_calls ?? true });
    for await (const lines of jsonLines(connection.stream({ path: "/api/chat", body: request, signal }))) {
      onProgress();
      const events: AnswerEvent[] = [];
      try {
        for (const line of lines) events.push(...answer.events(line));
      } finally {
        // Also when a line tells an error: what was said before it is still said.
        if (events.length > 0) yield events;
      }
    }
    if (!answer.done) {
      throw new Fault("upstream_error", { message: "The runtime ended its answer before it was complete." });
    }
  }

  return {
    name: "ollama",
    slots: options.slots ?? ollamaSlotsDefault,
    catalogue: (signal) => models.read(signal),
    chat,
    version: async (signal) => {
      const { version } = await connection.ask(z.object({ version: z.string() }), { path: "/api/version", signal });
      return version;
    },
    close: () => connection.close(),
  };
}
