import { Fault } from "#shared/fault/fault.ts";
import { ContextOverflow, estimateTextTokens, toldNoRoom } from "../context-overflow.ts";
import { cutAtStops } from "../cut-at-stops.ts";
import { PathUnknown } from "./openai-fault.ts";
import type { OpenAiProfile, ServedModel } from "./openai-profile.ts";
import { OpenAiTextAnswer } from "./openai-text-answer.ts";
import { openAiTextRequest } from "./openai-text-request.ts";
import { readAnswer } from "./read-answer.ts";
import { nothingToContinue } from "../refuse-unsupported-text.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import type { CompleteRun, EmitEvents } from "../runtime.ts";
import { usageAlways } from "../usage-always.ts";

interface Means {
  readonly connection: RuntimeConnection;
  readonly profile: OpenAiProfile;
  readonly model: ServedModel;
  readonly onBareEnd: () => void;
}

/** Continues one text on `/v1/completions`, and adapts the server's answer to the request. */
export async function openAiText(run: CompleteRun, means: Means, emit: EmitEvents): Promise<void> {
  const { prompt, stop } = run.body;
  const estimatedTokens = estimateTextTokens(prompt);
  const answer = (emitAnswer: EmitEvents): Promise<void> =>
    usageAlways({ estimatedTokens }, (emitOnce) => answerOnce(run, means, emitOnce), emitAnswer);
  if (stop === undefined || means.profile.endsAtStops) return answer(emit);
  return cutAtStops({ stop, estimatedTokens }, answer, emit);
}

/** Returns the fault that the client gets for a failed completion. */
export function textFault(error: unknown, { body, contextWindow }: CompleteRun): unknown {
  if (error instanceof PathUnknown) return continuesNever(error);
  if (!(error instanceof ContextOverflow)) return error;
  const estimatedTokens = estimateTextTokens(body.prompt);
  return toldNoRoom(error, { param: "prompt", contextWindow, estimatedTokens, tokensMax: body.max_tokens });
}

async function answerOnce(run: CompleteRun, means: Means, emit: EmitEvents): Promise<void> {
  const { connection, profile, model, onBareEnd } = means;
  const { body, contextWindow, cacheSalt, signal } = run;
  const question = openAiTextRequest({ profile, model, body, contextWindow, cacheSalt });
  const { logprobs } = body;
  const { leavesOutMarked = false } = profile.texts;
  const answer = new OpenAiTextAnswer({ logprobs, leavesOutMarked, interrupts: model.interrupts });
  const asked = { path: "/v1/completions", body: question, signal };
  await readAnswer(answer, { question: asked, connection, profile, run, onBareEnd }, emit);
  // A model without a begin token has no token to run on. The server did not run it, despite its report.
  if (body.prompt === "" && !answer.said && answer.promptTokens === 0) throw nothingToContinue();
}

function continuesNever({ internal }: PathUnknown): Fault {
  return new Fault("unsupported_value", { message: "The model does not continue texts.", param: "model", internal });
}
