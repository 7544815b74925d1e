import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";

export type ChatField = keyof ChatBody;

/** What every runtime honours that is spoken to, or its adapter in its place. */
const honouredByAll: readonly ChatField[] = [
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "max_tokens",
  "temperature",
  "top_p",
  "frequency_penalty",
  "presence_penalty",
  "seed",
  "stop",
  "reasoning_effort",
];

/** The fields of a chat that a runtime honours: those that all do, and what it does beside. */
export function honouring(...beside: readonly ChatField[]): ReadonlySet<ChatField> {
  return new Set([...honouredByAll, ...beside]);
}

/** Whether a field asks for nothing beyond what every answer is anyway. */
const isNeutral: Partial<Record<ChatField, (body: ChatBody) => boolean>> = {
  n: (body) => body.n === 1,
  logprobs: (body) => body.logprobs === false,
  logit_bias: (body) => Object.keys(body.logit_bias ?? {}).length === 0,
  response_format: (body) => body.response_format?.type === "text",
  tool_choice: (body) => body.tool_choice === "auto",
  parallel_tool_calls: (body) => body.parallel_tool_calls === true,
};

/**
 * Refuses a request that asks for what a runtime cannot honour, so that nothing is dropped in silence. The fields that
 * the runtime does honour are named, rather than those that it does not: a field that is new to the protocol is
 * refused by every adapter until somebody has thought about it.
 */
export function refuseUnsupported(body: ChatBody, honoured: ReadonlySet<ChatField>): void {
  for (const field of Object.keys(body) as ChatField[]) {
    if (field === "messages" || body[field] === undefined || honoured.has(field)) continue;
    if (isNeutral[field]?.(body)) continue;
    throw new Fault("unsupported_parameter", {
      message: `The runtime of this model does not support '${field}' with this value.`,
      param: field,
    });
  }
}
