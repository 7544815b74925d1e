import { Fault } from "#shared/fault/fault.ts";
import { objectsIn } from "./request-fields.ts";

interface Unsupported {
  /** The reason, as the end of a sentence that begins with the field's name. */
  readonly why: string;
  /** True if the value asks for nothing beyond the normal answer. */
  readonly isNeutral?: (value: unknown) => boolean;
}

/** OpenAI's fields that would change the answer in an unsupported way. All other fields are honoured or ignored. */
export const unsupportedChatFields: Readonly<Record<string, Unsupported>> = {
  functions: { why: "was replaced by 'tools'; send those" },
  function_call: { why: "was replaced by 'tool_choice'; send that" },
  audio: { why: "asks for a spoken answer, and answers are text here" },
  modalities: {
    why: "can only be ['text'] here",
    isNeutral: (value) => Array.isArray(value) && value.every((each) => each === "text"),
  },
  web_search_options: { why: "asks for a search of the web, and models here know only what they are sent" },
  moderation: { why: "asks for a verdict on the answer, and nothing here gives one" },
  verbosity: { why: "can only be 'medium' here", isNeutral: (value) => value === "medium" },
};

const unsupportedCompletionFields: Readonly<Record<string, Unsupported>> = {
  max_completion_tokens: { why: "is a field of chats; send 'max_tokens'" },
  response_format: { why: "is a field of chats; a text is continued as it is" },
};

const onlyInChats: Unsupported = { why: "is a field of chats; ask at /v1/chat/completions" };

/** Unsupported fields of the Responses API. */
export const unsupportedResponseFields: Readonly<Record<string, Unsupported>> = {
  previous_response_id: {
    why: "names an earlier response, and none is kept here; send the whole conversation in 'input'",
  },
  conversation: { why: "names a conversation that is kept, and none is kept here; send the whole of it in 'input'" },
  prompt: { why: "names a prompt that is kept, and none is kept here; send its text" },
  background: { why: "can only be false here: an answer ends with its client", isNeutral: (value) => value === false },
  moderation: { why: "asks for a verdict on the answer, and nothing here gives one" },
  n: { why: "can only be 1 here: a response is one answer", isNeutral: (value) => value === 1 },
  messages: { why: "is a field of chats; send 'input'" },
  max_tokens: { why: "is a field of chats; send 'max_output_tokens'" },
  max_completion_tokens: { why: "is a field of chats; send 'max_output_tokens'" },
  response_format: { why: "is a field of chats; send 'text.format'" },
  reasoning_effort: { why: "is a field of chats; send 'reasoning.effort'" },
  functions: { why: "was replaced by 'tools'; send those" },
  function_call: { why: "was replaced by 'tool_choice'; send that" },
  logprobs: { why: "is a field of chats; name 'message.output_text.logprobs' in 'include'" },
  stop: onlyInChats,
  seed: onlyInChats,
  logit_bias: onlyInChats,
  frequency_penalty: onlyInChats,
  presence_penalty: onlyInChats,
};

const unsupportedTextFields: Readonly<Record<string, Unsupported>> = {
  verbosity: { why: "can only be 'medium' here", isNeutral: (value) => value === "medium" },
};

const unsupportedMessageFields: Readonly<Record<string, Unsupported>> = {
  function_call: { why: "was replaced by 'tool_calls'; send those" },
  audio: { why: "names an earlier spoken answer, and answers are text here" },
};

/** Refuses a chat request that has an unsupported field. Removes fields with a neutral value. */
export function refuseUnsupportedFields(request: Record<string, unknown>): void {
  refuse(request, unsupportedChatFields, "");
  const { messages } = request;
  if (!Array.isArray(messages)) return;
  for (const [place, message] of messages.entries()) {
    if (typeof message !== "object" || message === null) continue;
    refuse(message, unsupportedMessageFields, `messages[${place}].`);
  }
}

/** Refuses a legacy completion request that has fields of chats. */
export function refuseFieldsOfChats(request: Record<string, unknown>): void {
  refuse(request, unsupportedCompletionFields, "");
}

export function refuseFieldsOfResponses(request: Record<string, unknown>): void {
  refuse(request, unsupportedResponseFields, "");
  const { text, input } = request;
  for (const wished of objectsIn([text])) refuse(wished, unsupportedTextFields, "text.");
  if (!Array.isArray(input)) return;
  const place = input.findIndex((item) => Reflect.get(Object(item), "type") === "item_reference");
  if (place === -1) return;
  throw new Fault("unsupported_value", {
    message: `'input[${place}]' refers to an item of an earlier response, and none is kept here; send the item itself, as clients do that are told 'store: false'.`,
    param: `input[${place}].type`,
  });
}

function refuse(holder: Record<string, unknown>, fields: Readonly<Record<string, Unsupported>>, path: string): void {
  for (const [field, { why, isNeutral }] of Object.entries(fields)) {
    const value = holder[field];
    if (value === undefined) continue;
    if (isNeutral?.(value) !== true) {
      const param = path + field;
      const code = isNeutral === undefined ? "unsupported_parameter" : "unsupported_value";
      throw new Fault(code, { message: `'${param}' ${why}.`, param });
    }
    Reflect.deleteProperty(holder, field);
  }
}
