import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";

export type ChatField = keyof ChatBody;

/** For each field: returns true if its value requests no more than the default answer. */
type Neutral<Body> = { readonly [Field in keyof Body]?: (body: Body) => boolean };

/** The fields that every runtime honours, itself or through its adapter. */
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

/** Returns the fields of a chat that a runtime honours: the common fields, and its own fields. */
export function honouring(...beside: readonly ChatField[]): ReadonlySet<ChatField> {
  return new Set([...honouredByAll, ...beside]);
}

/** Values that any runtime accepts, because every answer already fits them. */
const neutralInChats: Neutral<ChatBody> = {
  n: (body) => body.n === 1,
  logprobs: (body) => body.logprobs === false,
  logit_bias: (body) => Object.keys(body.logit_bias ?? {}).length === 0,
  response_format: (body) => body.response_format?.type === "text",
  tool_choice: (body) => body.tool_choice === "auto",
  parallel_tool_calls: (body) => body.parallel_tool_calls === true,
};

/** Refuses a chat with a field that the runtime does not honour. */
export function refuseUnsupported(body: ChatBody, honoured: ReadonlySet<ChatField>): void {
  refuseAllBut(honoured, { body, subject: "messages", neutral: neutralInChats });
}

/**
 * Refuses a request with a field that the runtime does not honour, so that no field is dropped silently. The list names
 * the honoured fields, and not the unsupported ones. Every adapter therefore refuses a new field of the protocol until
 * its list has the field.
 */
export function refuseAllBut<Body extends object>(
  honoured: ReadonlySet<keyof Body>,
  asked: {
    readonly body: Body;
    /** The field with the input of the request, which every runtime reads. */
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
