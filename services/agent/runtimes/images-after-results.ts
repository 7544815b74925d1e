import { contentText, type ChatMessage, type UserMessage, type UserPart } from "#shared/protocol/job-bodies.ts";

/** A message for a runtime, and the index in the request of the message that it comes from. */
export interface PlacedMessage {
  readonly message: ChatMessage;
  readonly at: number;
}

/**
 * Moves the images of tool results into a message of the user, since chat templates show images of users only. The
 * images stand after the last result of a turn, at the beginning of the user's next message if one follows at once.
 * A later turn of the conversation begins with the same bytes.
 */
export function imagesAfterResults(messages: readonly ChatMessage[]): PlacedMessage[] {
  const placed: PlacedMessage[] = [];
  const names = new Map<string, string>();
  let shown: UserPart[] = [];
  for (const [at, message] of messages.entries()) {
    if (message.role === "assistant") {
      for (const { id, function: called } of message.tool_calls ?? []) names.set(id, called.name);
    }
    if (message.role === "tool") {
      const images = imagesOf(message.content);
      if (images.length > 0) shown.push({ type: "text", text: caption(names.get(message.tool_call_id)) }, ...images);
      const text = contentText(message.content);
      placed.push({ message: { ...message, content: text === "" && images.length > 0 ? imagesOnly : text }, at });
      continue;
    }
    if (shown.length === 0) placed.push({ message, at });
    else if (message.role === "user") placed.push({ message: joined(shown, message), at });
    else placed.push({ message: { role: "user", content: shown }, at: at - 1 }, { message, at });
    shown = [];
  }
  if (shown.length > 0) placed.push({ message: { role: "user", content: shown }, at: messages.length - 1 });
  return placed;
}

/** The text of a result that has images and no text. */
const imagesOnly = "The result is the image in the next message.";

function caption(tool: string | undefined): string {
  return tool === undefined ? "The tool's result:" : `The result of '${tool}':`;
}

function imagesOf(content: UserMessage["content"]): UserPart[] {
  return typeof content === "string" ? [] : content.filter(({ type }) => type === "image_url");
}

function joined(shown: readonly UserPart[], message: UserMessage): UserMessage {
  const { content } = message;
  const own: readonly UserPart[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  return { ...message, content: [...shown, ...own] };
}
