import { z } from "zod";
import {
  assistantMessage,
  imagePart,
  systemMessage,
  textPart,
  toolMessage,
  userMessage,
  type ChatMessage,
} from "#shared/protocol/job-bodies.ts";
import { Fault } from "#shared/fault/fault.ts";

const developerMessage = systemMessage.extend({ role: z.literal("developer") });

const refusalPart = z.object({ type: z.literal("refusal"), refusal: z.string() });

/** An assistant message as clients send it back: with its refusal, and with its reasoning under either field name. */
const outerAssistantMessage = assistantMessage.extend({
  content: z.union([z.string(), z.array(z.discriminatedUnion("type", [textPart, refusalPart])).min(1)]).nullish(),
  refusal: z.string().nullish(),
  reasoning: z.string().nullish(),
});
type OuterAssistantMessage = z.infer<typeof outerAssistantMessage>;

const outerImagePart = imagePart.extend({
  image_url: imagePart.shape.image_url.extend({ detail: z.enum(["auto", "low", "high", "original"]).nullish() }),
});
const outerPart = z.discriminatedUnion("type", [textPart, outerImagePart]);

const outerUserMessage = userMessage.extend({
  content: z.union([z.string(), z.array(outerPart).min(1)]),
});

/** A message as OpenAI's clients write it. */
export const outerMessage = z.discriminatedUnion("role", [
  systemMessage,
  developerMessage,
  outerUserMessage,
  outerAssistantMessage,
  toolMessage,
]);

/** Converts a message to the form that machines get. The role `developer` becomes `system`; a refusal becomes text. */
export function innerMessage(message: z.infer<typeof outerMessage>): ChatMessage {
  switch (message.role) {
    case "developer":
      return { ...message, role: "system" };
    case "user":
      return typeof message.content === "string"
        ? { ...message, content: message.content }
        : { ...message, content: message.content.map(innerPart) };
    case "assistant":
      return innerAssistant(message);
    default:
      return message;
  }
}

function innerAssistant({ content, refusal, reasoning, ...message }: OuterAssistantMessage): ChatMessage {
  const thoughts = message.reasoning_content ?? reasoning;
  const said = Array.isArray(content) ? content.map(saidPart) : content || (refusal ?? content);
  return {
    ...message,
    ...(said === undefined ? {} : { content: said }),
    ...(thoughts === undefined ? {} : { reasoning_content: thoughts }),
  };
}

/** Maps the detail `original` to `high`, the highest that any runtime supports. */
function innerPart(part: z.infer<typeof outerPart>): z.infer<typeof textPart> | z.infer<typeof imagePart> {
  if (part.type === "text") return part;
  const { url, detail } = part.image_url;
  if (detail === null || detail === undefined) return { type: "image_url", image_url: { url } };
  return { type: "image_url", image_url: { url, detail: detail === "original" ? "high" : detail } };
}

function saidPart(part: z.infer<typeof textPart> | z.infer<typeof refusalPart>): z.infer<typeof textPart> {
  return part.type === "refusal" ? { type: "text", text: part.refusal } : part;
}

/** An error in the tool calls of a conversation and their results, and the index of the message with the error. */
export type ToolDisorder =
  | { readonly kind: "answers nothing" | "same ids"; readonly place: number }
  /** Calls have no result before the message at `place`, or before the end of the conversation. */
  | { readonly kind: "left open"; readonly place: number; readonly atEnd: boolean; readonly ids: readonly string[] };

/**
 * Finds tool messages without a call, duplicate call ids, and calls without a result before the next message. Models
 * were trained only on complete pairs, and answer nonsense otherwise.
 */
export function findToolDisorder(messages: readonly ChatMessage[]): ToolDisorder | undefined {
  let asked: ReadonlySet<string> = new Set();
  let open = new Set<string>();
  for (const [place, message] of messages.entries()) {
    if (message.role === "tool") {
      if (!asked.has(message.tool_call_id)) return { kind: "answers nothing", place };
      open.delete(message.tool_call_id);
      continue;
    }
    if (open.size > 0) return { kind: "left open", place, atEnd: false, ids: [...open] };
    const calls = message.role === "assistant" ? (message.tool_calls ?? []) : [];
    asked = new Set(calls.map(({ id }) => id));
    if (asked.size < calls.length) return { kind: "same ids", place };
    open = new Set(asked);
  }
  return open.size > 0 ? { kind: "left open", place: messages.length - 1, atEnd: true, ids: [...open] } : undefined;
}

const idsShownMax = 5;

/** Joins the ids of calls for an error message, at most `idsShownMax` of them. */
export function namedCalls(ids: readonly string[]): string {
  const shown = ids.slice(0, idsShownMax).map((id) => `'${id.slice(0, 64)}'`);
  const more = ids.length > shown.length ? ` and ${ids.length - shown.length} more` : "";
  return `${shown.join(", ")}${more}`;
}

/** Throws a `Fault` unless each tool message answers a call, and each call is answered before the next message. */
export function checkToolOrder(messages: readonly ChatMessage[]): void {
  const disorder = findToolDisorder(messages);
  if (disorder === undefined) return;
  const { kind, place } = disorder;
  const at = `messages[${place}]`;
  switch (kind) {
    case "answers nothing":
      throw new Fault("tool_messages_out_of_order", {
        message:
          "A message with the role 'tool' must follow the assistant's message that made the call, and name it in its 'tool_call_id'.",
        param: `${at}.role`,
      });
    case "same ids":
      throw new Fault("invalid_value", {
        message: "Two tool calls of one message have the same 'id'. Give each call its own id.",
        param: `${at}.tool_calls`,
      });
    case "left open":
      throw new Fault("tool_messages_out_of_order", {
        message: `Each tool call needs a message with the role 'tool' right after it. These calls have none: ${namedCalls(disorder.ids)}.`,
        param: disorder.atEnd ? at : `${at}.role`,
      });
  }
}
