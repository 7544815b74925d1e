import { Fault } from "#shared/fault/fault.ts";
import { contentText, type ChatMessage } from "#shared/protocol/chat-body.ts";
import type { OpenAiProfile } from "./openai-profile.ts";

type AssistantMessage = Extract<ChatMessage, { role: "assistant" }>;
type Call = NonNullable<AssistantMessage["tool_calls"]>[number];

/** Renders the messages for a server of this profile: text as one string, parts only where there are images. */
export function openAiMessages(profile: OpenAiProfile, messages: readonly ChatMessage[]): unknown[] {
  return messages.map((message, at) => openAiMessage(profile, message, `messages[${at}]`));
}

function openAiMessage(profile: OpenAiProfile, message: ChatMessage, path: string): unknown {
  switch (message.role) {
    case "system":
    case "tool":
      return { ...message, content: contentText(message.content) };
    case "user":
      return { ...message, content: userContent(profile, message.content, path) };
    case "assistant": {
      const { reasoning_content: reasoning, tool_calls: calls, content, ...rest } = message;
      return {
        ...rest,
        content: assistantContent(profile, contentText(content), calls),
        ...(reasoning && Object.fromEntries(profile.reasoningFields.map((field) => [field, reasoning]))),
        ...(calls && { tool_calls: calls.map((call, index) => withArguments(call, `${path}.tool_calls[${index}]`)) }),
      };
    }
  }
}

function assistantContent(
  profile: OpenAiProfile,
  text: string,
  calls: readonly Call[] | undefined,
): string | null | undefined {
  return text === "" && calls !== undefined ? profile.contentBesideCalls : text;
}

function userContent(
  profile: OpenAiProfile,
  content: Extract<ChatMessage, { role: "user" }>["content"],
  path: string,
): unknown {
  if (typeof content === "string") return content;
  const image = content.findIndex(({ type }) => type === "image_url");
  if (image < 0) return contentText(content);
  if (profile.takesImages) return content;
  throw new Fault("unsupported_value", {
    message: "The runtime of this model does not accept images.",
    param: `${path}.content[${image}]`,
  });
}

/**
 * Checks a call's arguments, which templates take as an object. Empty arguments become `{}`; anything but a JSON object
 * is refused.
 */
function withArguments(call: Call, path: string): Call {
  const text = call.function.arguments;
  if (text.trim() === "") return { ...call, function: { ...call.function, arguments: "{}" } };
  if (isJsonObject(text)) return call;
  const param = `${path}.function.arguments`;
  throw new Fault("invalid_value", { message: `'${param}' must be a JSON object, as a string.`, param });
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
