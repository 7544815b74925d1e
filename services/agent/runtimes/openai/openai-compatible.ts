import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import type { EmbedBody } from "#shared/protocol/job-bodies.ts";
import { CallsAsText, cutAtStops, offersTools, trimPrefix, usageAlways } from "../adjust-answer.ts";
import {
  ContextOverflow,
  estimateTextTokens,
  estimateTokens,
  noRoomFault,
  overflowFault,
} from "../context-overflow.ts";
import { fanOut } from "../fan-out.ts";
import { nothingToContinue } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { ChatRun, CompleteRun, Embeddings, EmbedRun, EmitEvents, Runtime, RuntimeSite } from "../runtime.ts";
import { LoadWatch, whenLoaded } from "./when-loaded.ts";
import { OpenAiAnswer } from "./openai-answer.ts";
import { echoedText, openAiChatRequest, openAiTextRequest } from "./openai-request.ts";
import { PathUnknown } from "./openai-fault.ts";
import type { OpenAiProfile, OpenAiServer, ServedModel } from "./openai-profile.ts";
import { readAnswer } from "./read-answer.ts";

type AnyRun = ChatRun | CompleteRun | EmbedRun;

/** Adapts any OpenAI-shaped server to a runtime. All differences between servers are in `OpenAiServer`. */
export function openAiCompatible(options: {
  readonly site: RuntimeSite;
  readonly connection: RuntimeConnection;
  readonly server: OpenAiServer;
}): Runtime {
  const { site, connection, server } = options;
  const { profile } = server;
  const loads = new LoadWatch(site.clock);
  let isBareEndLogged = false;

  function onBareEnd(): void {
    if (isBareEndLogged) return;
    isBareEndLogged = true;
    const fields = { runtime: profile.kind, place: connection.origin };
    site.log?.warn(fields, "this runtime ends streams in [DONE] without a finish_reason; it is taken for stop");
  }

  /** Sends the request once the model is loaded. `faultOf` maps a failure by the kind of request. */
  async function ask<Run extends AnyRun, Result>(
    run: Run,
    request: (model: ServedModel) => Promise<Result>,
    faultOf: (error: unknown, run: Run) => unknown,
  ): Promise<Result> {
    const model = (): ServedModel => server.modelOf(run.model);
    try {
      return await whenLoaded(run, { model, loads, clock: site.clock }, () => request(model()));
    } catch (error) {
      throw faultOf(error, run);
    }
  }

  function chat(run: ChatRun, emit: EmitEvents): Promise<void> {
    return profile.refusesSeveral?.(run.body) ? fanOut(chatOnce, run, emit) : chatOnce(run, emit);
  }

  function chatOnce(run: ChatRun, emit: EmitEvents): Promise<void> {
    return ask(run, (model) => openAiChat(run, { connection, profile, model, onBareEnd }, emit), chatFault);
  }

  function complete(run: CompleteRun, emit: EmitEvents): Promise<void> {
    return ask(run, (model) => openAiText(run, { connection, profile, model, onBareEnd }, emit), textFault);
  }

  function embed(run: EmbedRun): Promise<Embeddings> {
    const { body, signal } = run;
    const cacheSalt = profile.saltsCache ? run.cacheSalt : undefined;
    return ask(run, ({ name }) => openAiEmbed({ model: name, body, cacheSalt, connection, signal }), embedFault);
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
    unknownKind: profile.kind === "openai",
    catalogue: (signal) => server.catalogue(signal),
    chat,
    complete,
    ...(server.embeds && { embed }),
    get manages() {
      return server.manages ?? {};
    },
    ...(server.working && { working: async (signal: AbortSignal) => (await server.working?.(signal)) ?? 0 }),
    async close() {
      loads.stop();
      await server.close?.();
      await connection.close();
    },
  };
}

function embedFault(error: unknown, { body, contextWindow }: EmbedRun): unknown {
  if (!(error instanceof ContextOverflow)) return error;
  const estimatedTokens = Math.max(...body.input.map(estimateTextTokens));
  return overflowFault(error, { param: "input", contextWindow, estimatedTokens });
}

/** The server and the model that a request goes to. */
interface Target {
  readonly connection: RuntimeConnection;
  readonly profile: OpenAiProfile;
  readonly model: ServedModel;
  readonly onBareEnd: () => void;
}

/** Runs one chat on `/v1/chat/completions`, and adapts the server's answer to the request. */
async function openAiChat(run: ChatRun, target: Target, emit: EmitEvents): Promise<void> {
  const { profile } = target;
  const { body } = run;
  const trimmed = (emitTrimmed: EmitEvents): Promise<void> =>
    trimPrefix(echoedText(profile, body), (emitAnswer) => answerChat(run, target, emitAnswer), emitTrimmed);
  if (body.stop === undefined || profile.endsAtStops) return trimmed(emit);
  return cutAtStops({ stop: body.stop, estimatedTokens: estimateTokens(body) }, trimmed, emit);
}

/** Returns the fault that the client gets for a failed chat. */
function chatFault(error: unknown, { body, contextWindow }: ChatRun): unknown {
  if (error instanceof PathUnknown) return chatUnsupported(error);
  if (!(error instanceof ContextOverflow)) return error;
  const estimatedTokens = estimateTokens(body);
  return noRoomFault(error, { param: "messages", contextWindow, estimatedTokens, tokensMax: body.max_tokens });
}

function answerChat(run: ChatRun, { connection, profile, model, onBareEnd }: Target, emit: EmitEvents): Promise<void> {
  const { body, contextWindow, cacheSalt, signal } = run;
  const thinks = run.capabilities.thinking;
  const request = openAiChatRequest({ profile, model, body, thinks, contextWindow, cacheSalt });
  const answer = new OpenAiAnswer({
    choices: profile.answersSeveral ? (body.n ?? 1) : 1,
    parallelToolCalls: body.parallel_tool_calls ?? true,
    topLogprobs: body.top_logprobs ?? 0,
    needsLogprobs: profile.mayIgnoreLogprobs && body.logprobs === true,
    dropsUnreadableCalls: profile.dropsUnreadableCalls,
    interrupts: model.interrupts,
  });
  const calls = offersTools(body) ? undefined : new CallsAsText();
  return readAnswer(
    answer,
    { question: { path: "/v1/chat/completions", body: request, signal }, connection, profile, run, onBareEnd },
    calls === undefined ? emit : (events) => emit(calls.push(events)),
  );
}

function chatUnsupported({ internal }: PathUnknown): Fault {
  return new Fault("unsupported_value", { message: "The model does not support chat.", param: "model", internal });
}

/** Continues one text on `/v1/completions`, and adapts the server's answer to the request. */
async function openAiText(run: CompleteRun, target: Target, emit: EmitEvents): Promise<void> {
  const { prompt, stop } = run.body;
  const estimatedTokens = estimateTextTokens(prompt);
  const answer = (emitAnswer: EmitEvents): Promise<void> =>
    usageAlways({ estimatedTokens }, (emitOnce) => answerText(run, target, emitOnce), emitAnswer);
  if (stop === undefined || target.profile.endsAtStops) return answer(emit);
  return cutAtStops({ stop, estimatedTokens }, answer, emit);
}

/** Returns the fault that the client gets for a failed completion. */
function textFault(error: unknown, { body, contextWindow }: CompleteRun): unknown {
  if (error instanceof PathUnknown) return completionUnsupported(error);
  if (!(error instanceof ContextOverflow)) return error;
  const estimatedTokens = estimateTextTokens(body.prompt);
  return noRoomFault(error, { param: "prompt", contextWindow, estimatedTokens, tokensMax: body.max_tokens });
}

async function answerText(run: CompleteRun, target: Target, emit: EmitEvents): Promise<void> {
  const { connection, profile, model, onBareEnd } = target;
  const { body, contextWindow, cacheSalt, signal } = run;
  const request = openAiTextRequest({ profile, model, body, contextWindow, cacheSalt });
  const { logprobs } = body;
  const answer = new OpenAiAnswer({
    choices: 1,
    parallelToolCalls: false,
    topLogprobs: logprobs,
    needsLogprobs: logprobs !== undefined,
    dropsUnreadableCalls: false,
    leavesOutMarked: profile.texts.leavesOutMarked,
    interrupts: model.interrupts,
  });
  const question = { path: "/v1/completions", body: request, signal };
  await readAnswer(answer, { question, connection, profile, run, onBareEnd }, emit);
  // A model without a begin token has no token to run on. The server did not run it, despite its report.
  if (body.prompt === "" && !answer.hasOutput && answer.promptTokens === 0) throw nothingToContinue();
}

function completionUnsupported({ internal }: PathUnknown): Fault {
  return new Fault("unsupported_value", { message: "The model does not continue texts.", param: "model", internal });
}

const embedAnswer = z.object({
  data: z.array(z.object({ index: z.int().nonnegative().nullish(), embedding: z.array(z.number()) })),
  usage: z.object({ prompt_tokens: z.int().nonnegative().nullish() }).nullish(),
});

/** Embeds texts on `/v1/embeddings`, and returns the vectors as numbers, in the order of the texts. */
async function openAiEmbed(request: {
  readonly model: string;
  readonly body: EmbedBody;
  readonly cacheSalt?: string | undefined;
  readonly connection: RuntimeConnection;
  readonly signal: AbortSignal;
}): Promise<Embeddings> {
  const { model, body, cacheSalt, connection, signal } = request;
  const { input, dimensions } = body;
  const question = { model, input, dimensions, encoding_format: "float", cache_salt: cacheSalt };
  const answer = await connection
    .ask(embedAnswer, { path: "/v1/embeddings", body: question, signal })
    .catch((error: unknown) => {
      throw error instanceof PathUnknown ? embeddingUnsupported(error) : error;
    });
  return { vectors: inOrder(answer.data, input.length), promptTokens: answer.usage?.prompt_tokens ?? 0 };
}

function inOrder(data: z.infer<typeof embedAnswer>["data"], texts: number): readonly number[][] {
  const byIndex = new Map(data.map(({ index, embedding }, at) => [index ?? at, embedding]));
  const vectors = Array.from({ length: texts }, (_, index) => byIndex.get(index) ?? []);
  if (data.length === texts && vectors.every((vector) => vector.length > 0)) return vectors;
  throw new Fault("upstream_error", {
    message: "The runtime did not answer with one vector for each text.",
    internal: `${data.length} vectors for ${texts} texts`,
  });
}

function embeddingUnsupported({ internal }: PathUnknown): Fault {
  return new Fault("unsupported_value", { message: "The model does not embed.", param: "model", internal });
}
