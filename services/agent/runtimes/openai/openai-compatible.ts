import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { sleep } from "#shared/process/clock.ts";
import { callsAsText, offersTools } from "../calls-as-text.ts";
import { ContextOverflow, estimateTextTokens, estimateTokens, toldOverflow } from "../context-overflow.ts";
import { cutAtStops } from "../cut-at-stops.ts";
import { fanOut } from "../fan-out.ts";
import { OpenAiChatAnswer } from "./openai-chat-answer.ts";
import { echoedText, openAiChatRequest } from "./openai-chat-request.ts";
import { openAiEmbed } from "./openai-embed.ts";
import { ModelLoading, PathUnknown } from "./openai-fault.ts";
import type { OpenAiServer } from "./openai-server.ts";
import { trimPrefix } from "../prefix-trimmer.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { RuntimeSite } from "../runtime-site.ts";
import type { ChatRun, EmbedRun, Runtime } from "../runtime.ts";
import { serverSentEvents, type SentEvent } from "../server-sent-events.ts";

/** How long to wait before a server that is loading a model is asked again. */
const askAgainMs = 500;

/** How often a server that loads a model before it answers is looked at, by what its last list said. */
const loadingLookMs = 1_000;

/** Any server of the OpenAI shape as a runtime. All that differs between them is in its `OpenAiServer`. */
export function openAiCompatible(means: {
  readonly site: RuntimeSite;
  readonly connection: RuntimeConnection;
  readonly server: OpenAiServer;
}): Runtime {
  const { site, connection, server } = means;
  const { profile } = server;

  async function* answerOnce(run: ChatRun): AsyncGenerator<readonly AnswerEvent[]> {
    const { body, contextWindow, signal, onProgress } = run;
    const model = server.modelOf(run.model);
    const thinks = run.capabilities.thinking;
    const question = openAiChatRequest({ profile, model, body, thinks, contextWindow });
    const answer = new OpenAiChatAnswer({
      choices: profile.answersSeveral ? (body.n ?? 1) : 1,
      parallelToolCalls: body.parallel_tool_calls ?? true,
      topLogprobs: body.top_logprobs ?? 0,
      needsLogprobs: profile.mayIgnoreLogprobs && body.logprobs === true,
      dropsUnreadableCalls: profile.dropsUnreadableCalls,
    });
    const pieces = connection.stream({ path: "/v1/chat/completions", body: question, signal });
    for await (const batch of serverSentEvents(pieces)) {
      const events: AnswerEvent[] = [];
      try {
        for (const event of batch) refuseTooLong(event, contextWindow);
        for (const event of batch) for (const said of answer.events(event)) events.push(said);
      } finally {
        // Also when an event tells an error: what was said before it is still said.
        onProgress(answer.said || !batch.some(isSignOfLife) ? undefined : "prefill");
        if (events.length > 0) yield events;
      }
      if (answer.over) break;
    }
    if (answer.done) {
      refuseUnread(answer, contextWindow);
      return;
    }
    throw new Fault("upstream_error", { message: "The runtime ended its answer before it was complete." });
  }

  /** One answer as the request means it, whatever the server makes of it. */
  function meantAnswer(run: ChatRun): AsyncIterable<readonly AnswerEvent[]> {
    const { body } = run;
    let answer: AsyncIterable<readonly AnswerEvent[]> = trimPrefix(echoedText(profile, body), answerOnce(run));
    if (!offersTools(body)) answer = callsAsText(answer);
    return body.stop !== undefined && !profile.endsAtStops ? cutAtStops(body, answer) : answer;
  }

  function chat(run: ChatRun): AsyncIterable<readonly AnswerEvent[]> {
    return profile.refusesSeveral?.(run.body) ? fanOut(chatOnce, run) : chatOnce(run);
  }

  async function* chatOnce(run: ChatRun): AsyncGenerator<readonly AnswerEvent[]> {
    if (server.modelOf(run.model).loaded === false) run.onProgress("loading");
    try {
      yield* whenLoaded(run, () => meantAnswer(run));
    } catch (error) {
      if (error instanceof PathUnknown) throw chatsNever(error);
      throw error instanceof ContextOverflow ? chatTooLong(error, run) : error;
    }
  }

  async function* embed(run: EmbedRun): AsyncGenerator<readonly AnswerEvent[]> {
    const { body, signal, onProgress } = run;
    const { name, loaded } = server.modelOf(run.model);
    if (loaded === false) onProgress("loading");
    try {
      yield* whenLoaded(run, () => openAiEmbed({ model: name, body, connection, signal }));
    } catch (error) {
      throw error instanceof ContextOverflow ? textTooLong(error, run) : error;
    }
  }

  /** A server that still loads the model is asked again until it has, or nobody waits any more. */
  async function* whenLoaded(
    { model, signal, onProgress }: Pick<ChatRun, "model" | "signal" | "onProgress">,
    ask: () => AsyncIterable<readonly AnswerEvent[]>,
  ): AsyncGenerator<readonly AnswerEvent[]> {
    const looks = site.clock.every(loadingLookMs, () => server.modelOf(model).loading && onProgress("loading"));
    try {
      for (;;) {
        try {
          yield* ask();
          return;
        } catch (error) {
          if (!(error instanceof ModelLoading)) throw error;
          onProgress("loading");
          await sleep(site.clock, askAgainMs, signal);
        }
      }
    } finally {
      looks.cancel();
    }
  }

  /** A server that would read a prompt of any length is left as soon as it says how long this one is. */
  function refuseTooLong(event: SentEvent, contextWindow: number): void {
    const promptTokens = event.kind === "comment" ? profile.promptTokensIn?.(event.text) : undefined;
    if (promptTokens === undefined || promptTokens <= contextWindow) return;
    throw new ContextOverflow({ promptTokens }, "the runtime began to read a prompt longer than the window");
  }

  return {
    name: profile.kind,
    origin: connection.origin,
    get slots() {
      return site.slots ?? server.slots;
    },
    get slotsPerModel() {
      return server.slotsPerModel ?? false;
    },
    answersSeveral: profile.answersSeveral,
    catalogue: (signal) => server.catalogue(signal),
    chat,
    ...(server.embeds && { embed }),
    get manages() {
      return server.manages ?? {};
    },
    ...(server.working && { working: async (signal: AbortSignal) => (await server.working?.(signal)) ?? 0 }),
    async close() {
      await server.close?.();
      await connection.close();
    },
  };
}

/** Whether an event only says that the server is at work, such as how far it has read the prompt. */
function isSignOfLife(event: SentEvent): boolean {
  return event.kind === "comment" || event.data.includes('"prompt_progress"');
}

/** Some servers read no more of a prompt than fits, answer nothing, and call that a success. */
function refuseUnread({ said, promptTokens = 0 }: OpenAiChatAnswer, contextWindow: number): void {
  if (said || promptTokens <= contextWindow) return;
  throw new ContextOverflow({ promptTokens }, "the runtime answered nothing to a prompt longer than the window");
}

function chatsNever({ internal }: PathUnknown): Fault {
  return new Fault("unsupported_value", { message: "The model does not support chat.", param: "model", internal });
}

/** A prompt may fit and still leave less room than the client asked for, which some servers refuse. */
function chatTooLong(refusal: ContextOverflow, { body, contextWindow }: ChatRun): Fault {
  const { promptTokens, windowTokens = contextWindow } = refusal.overflow;
  const limit = body.max_tokens;
  if (limit === undefined || promptTokens === undefined || promptTokens > windowTokens) {
    return toldOverflow(refusal, { param: "messages", contextWindow, estimatedTokens: estimateTokens(body) });
  }
  return new Fault("context_length_exceeded", {
    message:
      `The context window of this model is ${windowTokens} tokens on this machine: the messages take ${promptTokens}, ` +
      `which leaves no room for the ${limit} of 'max_tokens'.`,
    param: "messages",
    internal: refusal.internal,
  });
}

function textTooLong(refusal: ContextOverflow, { body, contextWindow }: EmbedRun): Fault {
  const estimatedTokens = Math.max(...body.input.map(estimateTextTokens));
  return toldOverflow(refusal, { param: "input", contextWindow, estimatedTokens });
}
