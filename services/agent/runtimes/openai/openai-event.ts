import type { FinishReason } from "#shared/answer/answer-event.ts";
import { Fault } from "#shared/fault/fault.ts";
import { answerFault } from "./openai-fault.ts";
import type { SentEvent } from "../read-stream.ts";

/** The result of reading one event. `end` means that no more events follow, and does not prove success. */
export type Told =
  | { readonly kind: "nothing" }
  | { readonly kind: "end" }
  | { readonly kind: "chunk"; readonly value: unknown };

/** Finish reasons by the server's word. Every other word means that the model was done. */
const finishReasons: ReadonlyMap<string, FinishReason> = new Map([
  ["length", "length"],
  ["tool_calls", "tool_calls"],
  ["function_call", "tool_calls"],
  ["content_filter", "content_filter"],
]);

/** Finish reasons by which a server reports a failed answer, if it reports the failure at all. */
const failureReasons = new Set(["error", "abort"]);

/** Reads one event. Throws the fault if the event reports an error, in any of the forms that servers use. */
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

/**
 * Returns the fault for an interrupted stream. llama-cpp-python's server leaves a stream as soon as another request
 * comes, from any client.
 */
export function interrupted(): Fault {
  return new Fault("upstream_error", {
    message: "The runtime left its answer for another request.",
    internal:
      "the stream ended in [DONE] without a finish_reason: the server interrupts a stream when another client asks it; " +
      "start it with --interrupt_requests false",
  });
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
    // Drops the parser's own error: its message quotes a part of the text, which may be a user's answer.
    throw senseless(`not JSON, ${data.length} characters`);
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
