import type { AnswerEvent } from "#shared/answer/answer-event.ts";

/** Returns the number of characters that an event adds to the response. */
export function charactersSaid(event: AnswerEvent): number {
  switch (event.kind) {
    case "text":
      return event.text.length + (event.logprobs === undefined ? 0 : JSON.stringify(event.logprobs).length);
    case "reasoning":
      return event.text.length;
    case "tool-call-start":
      return event.name.length + (event.id?.length ?? 0);
    case "tool-call-delta":
      return event.arguments.length;
    default:
      return 0;
  }
}
