import type { FinishReason } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { answerFault } from "./openai-fault.ts";
import type { SentEvent } from "../server-sent-events.ts";

/** What an event of an answer comes to. That there is no more to come is no proof of success. */
export type Told =
  | { readonly kind: "nothing" }
  | { readonly kind: "end" }
  | { readonly kind: "chunk"; readonly value: unknown };

/** Every other reason means that the model was done. */
const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ["length", "length"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["content_filter", "content_filter"],
]);

/** With these a server tells that an answer has failed, where it tells it at all. */
const failureReasons = new Set(["error", "abort"]);

/** Reads one event; an error that is told in it, in any of the ways that servers tell one, is thrown. */
export function toldBy(event: SentEvent, { said }: { readonly said: boolean }): Told {
  if (event.kind === "comment") return { kind: "nothing" };
  if (!event.data.startsWith("{") && event.data.trim() === "[DONE]") return { kind: "end" };
  const value = parse(event.data);
  if (event.name === "error" || typeof value === "string") throw answerFault(value, { said });
  if (isRecord(value) && value["error"] !== undefined && value["error"] !== null) {
    throw answerFault(value["error"], { said });
  }
  return { kind: "chunk", value };
}

export function finishReasonOf(told: string, { said }: { readonly said: boolean }): FinishReason {
  if (failureReasons.has(told)) throw answerFault({ type: told }, { said });
  return finishReasons.get(told) ?? "stop";
}

export function senseless(internal: string): Fault {
  return new Fault("upstream_error", { message: "The runtime sent an event that makes no sense.", internal });
}

export function tellsNoLogprobs(): Fault {
  return new Fault("unsupported_parameter", {
    message: "The runtime of this model does not support 'logprobs'.",
    param: "logprobs",
  });
}

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    // The parser's own error is left behind: its message repeats a part of the text, which may be someone's answer.
    throw senseless(`not JSON, ${data.length} characters`);
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
