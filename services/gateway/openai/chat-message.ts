import { z } from "zod";
import {
  assistantMessage,
  imagePart,
  systemMessage,
  textPart,
  toolMessage,
  userMessage,
  type ChatMessage,
} from "#shared/protocol/chat-body.ts";

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
