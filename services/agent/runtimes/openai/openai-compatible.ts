import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { sleep } from "#shared/process/clock.ts";
import { abilityAt } from "#shared/protocol/media-body.ts";
import { cutAtStops, prefilledText, trimPrefix } from "../adjust-answer.ts";
import { estimatePromptTokens, tellOverflow } from "../runtime-faults.ts";
import { fanOut } from "../fan-out.ts";
import { firstImage, nothingToContinue } from "../refuse-unsupported.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type {
  ChatRun,
  CompleteRun,
  Embeddings,
  EmbedRun,
  EmitEvents,
  MediaRun,
  RerankRun,
  Runtime,
  RuntimeSite,
} from "../runtime.ts";
import { OpenAiAnswer, readAnswer } from "./openai-answer.ts";
import { openAiChatRequest, openAiTextRequest } from "./openai-request.ts";
import { openAiMedia } from "./openai-media.ts";
import { openAiRerank } from "./openai-rerank.ts";
import { openAiTokens } from "./openai-tokens.ts";
import { ModelLoading, PathUnknown } from "./openai-fault.ts";
import type { OpenAiServer, Served, RuntimeModel } from "./openai-profile.ts";

/** The wait before a request is repeated to a server that is loading a model. */
const askAgainMs = 500;

/** Adapts any OpenAI-shaped server to a runtime. All differences between servers are in `OpenAiServer`. */
export function openAiCompatible(options: {
  readonly site: RuntimeSite;
  readonly connection: RuntimeConnection;
  readonly server: OpenAiServer;
}): Runtime {
  const { site, connection, server } = options;
  const { profile } = server;
  let served: Awaited<ReturnType<OpenAiServer["catalogue"]>> = [];
  let isBareEndLogged = false;
  /** The requests that are under way. */
  const asking = new Set<Pick<AnyRun, "model" | "onProgress">>();

  function modelOf(id: string): RuntimeModel {
    return served.find((each) => each.id === id || each.name === id) ?? { name: id };
  }

  function onBareEnd(): void {
    if (isBareEndLogged) return;
    isBareEndLogged = true;
    const fields = { runtime: profile.kind, place: connection.origin };
    site.log?.warn(fields, "this runtime ends streams in [DONE] without a finish_reason; it is taken for stop");
  }

  /**
   * Sends the request, and again until the server has loaded the model or no client waits any more. `unsupported` is
   * the message if the server does not have the path of the request.
   */
  async function ask<Result>(
    run: AnyRun,
    unsupported: string,
    request: (target: ServedTarget) => Promise<Result>,
  ): Promise<Result> {
    const { body, model, signal, onProgress } = run;
    // A set that outlives the request holds no body of it.
    const asked = { model, onProgress };
    if (modelOf(run.model).loaded === false) onProgress("loading");
    asking.add(asked);
    try {
      for (;;) {
        try {
          return await request({ connection, profile, model: modelOf(run.model), onBareEnd });
        } catch (error) {
          if (!(error instanceof ModelLoading)) throw error;
          onProgress("loading");
          await sleep(site.clock, askAgainMs, signal);
        }
      }
    } catch (error) {
      if (!(error instanceof PathUnknown)) {
        if ("path" in body) throw error;
        throw tellOverflow(error, { ...run, body }, "max_tokens" in body ? body.max_tokens : undefined);
      }
      throw new Fault("unsupported_value", { message: unsupported, param: "model", internal: error.internal });
    } finally {
      asking.delete(asked);
    }
  }

  /** Runs a chat or continues a text. Ends the answer at stop strings, if the server leaves that to its adapter. */
  function answer(run: ChatRun | CompleteRun, emit: EmitEvents): Promise<void> {
    const lack = "messages" in run.body ? "The model does not support chat." : "The model does not continue texts.";
    return ask(run, lack, (target) =>
      profile.endsAtStops
        ? wholeAnswer(run, target, emit)
        : cutAtStops(run.body, (emitAnswer) => wholeAnswer(run, target, emitAnswer), emit),
    );
  }

  async function countPrompt(run: ChatRun): Promise<number> {
    const model = modelOf(run.model);
    if (server.count === undefined || model.loaded === false || firstImage(run.body) !== undefined) throw cannotCount();
    return server.count(openAiChatRequest({ profile, model }, run), run.signal).catch((error: unknown) => {
      throw error instanceof PathUnknown ? cannotCount() : error;
    });
  }

  return {
    name: profile.kind,
    origin: connection.origin,
    get answersNotUtf8() {
      return connection.answersNotUtf8;
    },
    get slots() {
      return site.slots ?? server.slots;
    },
    get guessesSlots() {
      return site.slots === undefined && server.guessesSlots === true;
    },
    get slotsPerModel() {
      return server.slotsPerModel ?? false;
    },
    get version() {
      return server.version;
    },
    answersSeveral: profile.answersSeveral ?? false,
    unknownKind: profile.kind === "openai",
    async catalogue(signal) {
      try {
        served = await server.catalogue(signal);
      } finally {
        for (const { model, onProgress } of asking) if (modelOf(model).loading) onProgress("loading");
      }
      if (server.tokenizes !== true) return served;
      return served.map((each) => ({ ...each, furtherAbilities: [...(each.furtherAbilities ?? []), "tokenize"] }));
    },
    chat: (run, emit) => (profile.refusesSeveral?.(run.body) ? fanOut(answer, run, emit) : answer(run, emit)),
    ...(server.count && { count: countPrompt }),
    complete: answer,
    ...(server.embeds && {
      embed: (run: EmbedRun) => ask(run, "The model does not embed.", (target) => openAiEmbed(run, target)),
    }),
    ...(server.reranks && {
      rerank: (run: RerankRun) => ask(run, "The model does not rerank.", (target) => openAiRerank(run, target)),
    }),
    media: (run, emit) =>
      ask(run, `The server of this model does not have '${run.body.path}'.`, (target) =>
        (abilityAt[run.body.path] === "tokenize" ? openAiTokens : openAiMedia)(run, target, emit),
      ),
    get manages() {
      const { load, unload } = server.manages ?? {};
      return {
        ...(load && { load: (run) => load({ ...run, model: modelOf(run.model).name }) }),
        ...(unload && { unload: (run) => unload({ ...run, model: modelOf(run.model).name }) }),
      } satisfies Runtime["manages"];
    },
    ...(server.working && { working: async (signal: AbortSignal) => (await server.working?.(signal)) ?? 0 }),
    async close() {
      await server.close?.();
      await connection.close();
    },
  };
}

function cannotCount(): Fault {
  const message = "This version of the runtime counts tokens of texts only and of loaded models only, or none.";
  return new Fault("unsupported_value", { message, param: "model" });
}

type AnyRun = ChatRun | CompleteRun | EmbedRun | RerankRun | MediaRun;

interface ServedTarget extends Served {
  readonly connection: RuntimeConnection;
  readonly onBareEnd: () => void;
}

/** Runs a chat or continues a text, and adapts the server's answer to the request. */
async function wholeAnswer(run: ChatRun | CompleteRun, target: ServedTarget, emit: EmitEvents): Promise<void> {
  const { body, traceparent, signal } = run;
  const asked =
    "messages" in body
      ? { path: "/v1/chat/completions", body: openAiChatRequest(target, { ...run, body }) }
      : { path: "/v1/completions", body: openAiTextRequest(target, { ...run, body }) };
  const question = { ...asked, traceparent, signal };
  const answer = new OpenAiAnswer(body, target);
  const request = { question, run, ...target };
  // A server that is told to continue the last message does not repeat it.
  const mayEcho = "messages" in body && target.profile.prefill === "as-the-template";
  if (mayEcho && body.messages.at(-1)?.role === "assistant") {
    await trimPrefix(prefilledText(body), (emitAnswer) => readAnswer(answer, request, emitAnswer), emit);
  } else await readAnswer(answer, request, emit);
  if ("messages" in body) return;
  // A model without a begin token has no token to run on. The server did not run it, despite its report.
  if (body.prompt === "" && !answer.hasOutput && answer.promptTokens === 0) throw nothingToContinue();
  if (answer.promptTokens !== undefined) return;
  // The server does not report the usage.
  const promptTokens = estimatePromptTokens(body);
  await emit([{ kind: "usage", promptTokens, completionTokens: answer.textPieces }]);
}

const embedAnswer = z.object({
  data: z.array(z.object({ index: z.int().nonnegative().nullish(), embedding: z.array(z.number()) })),
  usage: z.object({ prompt_tokens: z.int().nonnegative().nullish() }).nullish(),
});

/** Embeds texts on `/v1/embeddings`, and returns the vectors as numbers, in the order of the texts. */
async function openAiEmbed(
  { body, cacheSalt, traceparent, signal }: EmbedRun,
  target: ServedTarget,
): Promise<Embeddings> {
  const { connection, profile, model } = target;
  const { input, dimensions } = body;
  const salt = profile.saltsCache ? cacheSalt : undefined;
  const sent = { model: model.name, input, dimensions, encoding_format: "float", cache_salt: salt };
  const question = { path: "/v1/embeddings", body: sent, traceparent, signal };
  const { data, usage } = await connection.ask(embedAnswer, question);
  const byIndex = new Map(data.map(({ index, embedding }, at) => [index ?? at, embedding]));
  const vectors = input.map((_, index) => byIndex.get(index) ?? []);
  if (data.length !== input.length || vectors.some((vector) => vector.length === 0)) {
    const message = "The runtime did not answer with one vector for each text.";
    throw new Fault("upstream_error", { message, internal: `${data.length} vectors for ${input.length} texts` });
  }
  return { vectors, promptTokens: usage?.prompt_tokens ?? 0 };
}
