import { Fault } from "#shared/fault/fault.ts";
import type { Answering } from "../answering.ts";
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
import type { ChatRun } from "../runtime.ts";

interface Means {
  readonly connection: RuntimeConnection;
  readonly profile: OpenAiProfile;
  readonly model: ServedModel;
  readonly onBareEnd: () => void;
}

/** Runs one chat on `/v1/chat/completions`, and adapts the server's answer to the request. */
export function openAiChat(run: ChatRun, means: Means): Answering {
  const { profile } = means;
  const { body } = run;
  const answer = trimPrefix(echoedText(profile, body), answerOnce(run, means));
  if (body.stop === undefined || profile.endsAtStops) return answer;
  return cutAtStops({ stop: body.stop, estimatedTokens: estimateTokens(body) }, answer);
}

/** Returns the fault that the client gets for a failed chat. */
export function chatFault(error: unknown, { body, contextWindow }: ChatRun): unknown {
  if (error instanceof PathUnknown) return chatsNever(error);
  if (!(error instanceof ContextOverflow)) return error;
  const estimatedTokens = estimateTokens(body);
  return toldNoRoom(error, { param: "messages", contextWindow, estimatedTokens, tokensMax: body.max_tokens });
}

function answerOnce(run: ChatRun, { connection, profile, model, onBareEnd }: Means): Answering {
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
  return readAnswer(answer, {
    question: { path: "/v1/chat/completions", body: question, signal },
    connection,
    profile,
    run,
    meant: offersTools(body) ? undefined : new CallsAsText(),
    onBareEnd,
  });
}

function chatsNever({ internal }: PathUnknown): Fault {
  return new Fault("unsupported_value", { message: "The model does not support chat.", param: "model", internal });
}
