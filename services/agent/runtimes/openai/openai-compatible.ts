import { ContextOverflow, estimateTextTokens, toldOverflow } from "../context-overflow.ts";
import { fanOut } from "../fan-out.ts";
import { chatFault, openAiChat } from "./openai-chat.ts";
import { openAiEmbed } from "./openai-embed.ts";
import type { ServedModel } from "./openai-profile.ts";
import type { OpenAiServer } from "./openai-server.ts";
import { openAiText, textFault } from "./openai-text.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { RuntimeSite } from "../runtime-site.ts";
import type { ChatRun, CompleteRun, EmbedRun, Embeddings, EmitEvents, Runtime } from "../runtime.ts";
import { LoadWatch } from "./load-watch.ts";
import { whenLoaded } from "./when-loaded.ts";

type AnyRun = ChatRun | CompleteRun | EmbedRun;

/** Adapts any OpenAI-shaped server to a runtime. All differences between servers are in `OpenAiServer`. */
export function openAiCompatible(means: {
  readonly site: RuntimeSite;
  readonly connection: RuntimeConnection;
  readonly server: OpenAiServer;
}): Runtime {
  const { site, connection, server } = means;
  const { profile } = server;
  const loads = new LoadWatch(site.clock);
  let bareEndTold = false;

  function onBareEnd(): void {
    if (bareEndTold) return;
    bareEndTold = true;
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
  return toldOverflow(error, { param: "input", contextWindow, estimatedTokens });
}
