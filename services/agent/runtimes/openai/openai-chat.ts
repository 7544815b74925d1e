import { Fault } from "#shared/fault/fault.ts";
import { CallsAsText, offersTools } from "../calls-as-text.ts";
import { ContextOverflow, estimateTokens, toldNoRoom } from "../context-overflow.ts";
import { cutAtStops } from "../cut-at-stops.ts";
import { OpenAiChatAnswer } from "./openai-chat-answer.ts";
import { echoedText, openAiChatRequest } from "./openai-chat-request.ts";
import { PathUnknown } from "./openai-fault.ts";
import type { OpenAiProfile, ServedModel } from "./openai-profile.ts";
import { trimPrefix } from "../prefix-trimmer.ts";
import { readAnswer } from "./read-answer.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { ChatRun, EmitEvents } from "../runtime.ts";

interface Means {
  readonly connection: RuntimeConnection;
  readonly profile: OpenAiProfile;
  readonly model: ServedModel;
  readonly onBareEnd: () => void;
}

/** Runs one chat on `/v1/chat/completions`, and adapts the server's answer to the request. */
export async function openAiChat(run: ChatRun, means: Means, emit: EmitEvents): Promise<void> {
  const { profile } = means;
  const { body } = run;
  const trimmed = (emitTrimmed: EmitEvents): Promise<void> =>
    trimPrefix(echoedText(profile, body), (emitAnswer) => answerOnce(run, means, emitAnswer), emitTrimmed);
  if (body.stop === undefined || profile.endsAtStops) return trimmed(emit);
  return cutAtStops({ stop: body.stop, estimatedTokens: estimateTokens(body) }, trimmed, emit);
}

/** Returns the fault that the client gets for a failed chat. */
export function chatFault(error: unknown, { body, contextWindow }: ChatRun): unknown {
  if (error instanceof PathUnknown) return chatsNever(error);
  if (!(error instanceof ContextOverflow)) return error;
  const estimatedTokens = estimateTokens(body);
  return toldNoRoom(error, { param: "messages", contextWindow, estimatedTokens, tokensMax: body.max_tokens });
}

function answerOnce(run: ChatRun, { connection, profile, model, onBareEnd }: Means, emit: EmitEvents): Promise<void> {
  const { body, contextWindow, cacheSalt, signal } = run;
  const thinks = run.capabilities.thinking;
  const question = openAiChatRequest({ profile, model, body, thinks, contextWindow, cacheSalt });
  const answer = new OpenAiChatAnswer({
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
    { question: { path: "/v1/chat/completions", body: question, signal }, connection, profile, run, onBareEnd },
    calls === undefined ? emit : (events) => emit(calls.push(events)),
  );
}

function chatsNever({ internal }: PathUnknown): Fault {
  return new Fault("unsupported_value", { message: "The model does not support chat.", param: "model", internal });
}
