import type { AnswerHead, AnswerRenderer } from "../answer-renderer.ts";
import { WholeCompletion } from "../whole-completion.ts";
import { ChatChoice } from "./chat-choice.ts";

/** Renders a chat completion as one `chat.completion` object. */
export function chatCompletion(head: AnswerHead): AnswerRenderer {
  return new WholeCompletion(head, { object: "chat.completion", begin: () => new ChatChoice() });
}
