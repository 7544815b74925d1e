import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";

export type ChatField = keyof ChatBody;

/** Tells for a field whether it asks for nothing beyond what every answer is anyway. */
type Neutral<Body> = { readonly [Field in keyof Body]?: (body: Body) => boolean };

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

/** What may be asked of any runtime, since every answer is so anyway. */
const neutralInChats: Neutral<ChatBody> = {
  n: (body) => body.n === 1,
  logprobs: (body) => body.logprobs === false,
  logit_bias: (body) => Object.keys(body.logit_bias ?? {}).length === 0,
  response_format: (body) => body.response_format?.type === "text",
  tool_choice: (body) => body.tool_choice === "auto",
  parallel_tool_calls: (body) => body.parallel_tool_calls === true,
};

/** Refuses a chat that asks for what a runtime cannot honour. */
export function refuseUnsupported(body: ChatBody, honoured: ReadonlySet<ChatField>): void {
  refuseAllBut(honoured, { body, subject: "messages", neutral: neutralInChats });
}

/**
 * Refuses a request that asks for what a runtime cannot honour, so that nothing is dropped in silence. The fields that
 * the runtime does honour are named, rather than those that it does not: a field that is new to the protocol is
 * refused by every adapter until somebody has thought about it.
 */
export function refuseAllBut<Body extends object>(
  honoured: ReadonlySet<keyof Body>,
  asked: {
    readonly body: Body;
    /** The field that the request is about, which every runtime reads. */
    readonly subject: keyof Body;
    readonly neutral: Neutral<Body>;
  },
): void {
  const { body, subject, neutral } = asked;
  for (const field of Object.keys(body) as (keyof Body & string)[]) {
    if (field === subject || body[field] === undefined || honoured.has(field)) continue;
    if (neutral[field]?.(body)) continue;
    throw new Fault("unsupported_parameter", {
      message: `The runtime of this model does not support '${field}' with this value.`,
      param: field,
    });
  }
}
