import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { modelId } from "#shared/model/model.ts";
import { chatBody, stopsMax, type ChatBody } from "#shared/protocol/chat-body.ts";
import { readShape } from "../intake/read-shape.ts";
import { innerMessage, outerMessage } from "./chat-message.ts";
import { dropNulls, objectsIn } from "./drop-nulls.ts";
import { chosenTools, outerToolChoice } from "./tool-choice.ts";
import { checkToolOrder } from "./tool-order.ts";
import { refuseUnsupportedFields } from "./unsupported-fields.ts";

export const messagesMax = 10_000;

const inner = chatBody.shape;

/** A chat completion request as OpenAI's clients write it: a null counts as a field that is not there. */
export const chatRequest = z.strictObject({
  model: modelId,
  messages: z.array(outerMessage).min(1).max(messagesMax),
  stream: z.boolean().nullish(),
  stream_options: z.strictObject({ include_usage: z.boolean().nullish() }).nullish(),
  tools: inner.tools.nullable(),
  tool_choice: outerToolChoice.nullish(),
  parallel_tool_calls: inner.parallel_tool_calls.nullable(),
  max_tokens: inner.max_tokens.nullable(),
  max_completion_tokens: inner.max_tokens.nullable(),
  temperature: inner.temperature.nullable(),
  top_p: inner.top_p.nullable(),
  frequency_penalty: inner.frequency_penalty.nullable(),
  presence_penalty: inner.presence_penalty.nullable(),
  seed: inner.seed.nullable(),
  stop: z.union([z.string().min(1), z.array(z.string().min(1)).min(1).max(stopsMax)]).nullish(),
  n: inner.n.nullable(),
  logprobs: inner.logprobs.nullable(),
  top_logprobs: inner.top_logprobs.nullable(),
  logit_bias: inner.logit_bias.nullable(),
  response_format: inner.response_format.nullable(),
  reasoning_effort: inner.reasoning_effort.nullable(),
});
type ChatRequest = z.infer<typeof chatRequest>;

export interface ReadChatRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  readonly body: ChatBody;
  /** The path of the first image, if there is one. */
  readonly imageParam: string | undefined;
  readonly ignored: readonly string[];
}

/** Reads a chat request and translates it to what machines are given. Everything OpenAI lets be said in two ways is one. */
export function readChatRequest(input: Record<string, unknown>): ReadChatRequest {
  dropNulls(input);
  for (const message of objectsIn(input["messages"])) dropNulls(message, "content");
  refuseUnsupportedFields(input);
  const { value, ignored } = readShape(chatRequest, input);
  checkTogether(value);
  const body = bodyOf(value);
  checkToolOrder(body.messages);
  return {
    model: value.model,
    stream: value.stream ?? false,
    includeUsage: value.stream_options?.include_usage ?? false,
    body,
    imageParam: checkImages(value),
    ignored,
  };
}

function bodyOf(request: ChatRequest): ChatBody {
  const { model: _m, stream: _s, stream_options: _o, max_completion_tokens: _c, ...rest } = request;
  const { messages, stop, tools, tool_choice, ...same } = rest;
  const body: Record<string, unknown> = {
    messages: messages.map(innerMessage),
    ...chosenTools({ tools, tool_choice }),
  };
  for (const [field, value] of Object.entries(same)) {
    if (value !== null && value !== undefined) body[field] = value;
  }
  const maxTokens = request.max_completion_tokens ?? request.max_tokens;
  if (maxTokens !== null && maxTokens !== undefined) body["max_tokens"] = maxTokens;
  if (stop !== null && stop !== undefined) body["stop"] = typeof stop === "string" ? [stop] : stop;
  return body as ChatBody;
}

/** What a schema of single fields cannot say. */
function checkTogether(request: ChatRequest): void {
  const { max_tokens: old, max_completion_tokens: current } = request;
  if (typeof old === "number" && typeof current === "number" && old !== current) {
    throw new Fault("invalid_value", {
      message: "'max_tokens' and 'max_completion_tokens' say different things; send only the latter.",
      param: "max_tokens",
    });
  }
  if (request.stream_options && request.stream !== true) {
    throw new Fault("invalid_value", {
      message: "'stream_options' is only allowed when 'stream' is true.",
      param: "stream_options",
    });
  }
  if (typeof request.top_logprobs === "number" && request.logprobs !== true) {
    throw new Fault("invalid_value", {
      message: "'top_logprobs' is only allowed when 'logprobs' is true.",
      param: "top_logprobs",
    });
  }
}

/** Machines do not fetch what a request points at: an address inside somebody's network is no picture. */
function checkImages(request: ChatRequest): string | undefined {
  let first: string | undefined;
  for (const [place, message] of request.messages.entries()) {
    if (message.role !== "user" || typeof message.content === "string") continue;
    for (const [part, content] of message.content.entries()) {
      if (content.type !== "image_url") continue;
      const param = `messages[${place}].content[${part}]`;
      first ??= param;
      if (/^data:image\/[a-z0-9.+-]+;base64,/i.test(content.image_url.url.slice(0, 100))) continue;
      throw new Fault("invalid_value", {
        message:
          "An image must be sent as a data URL, 'data:image/png;base64,…'; images are not fetched from elsewhere.",
        param: `${param}.image_url.url`,
      });
    }
  }
  return first;
}
