import { Fault } from "#shared/fault/fault.ts";
import type { Capabilities } from "#shared/model/model.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";

/** Refuses a chat that needs a capability that the model lacks, whatever its runtime supports. */
export function refuseIncapable(chat: { model: string; capabilities: Capabilities; body: ChatBody }): void {
  const { model, capabilities, body } = chat;
  if (!capabilities.completion) {
    throw new Fault("unsupported_value", { message: `The model '${model}' does not support chat.`, param: "model" });
  }
  if (body.tools !== undefined && !capabilities.tools) {
    throw new Fault("model_does_not_support_tools", {
      message: `The model '${model}' does not support tools.`,
      param: "tools",
    });
  }
  if (!capabilities.vision) {
    const image = firstImage(body);
    if (image !== undefined) {
      throw new Fault("unsupported_value", { message: `The model '${model}' does not accept images.`, param: image });
    }
  }
  const effort = body.reasoning_effort;
  if (effort !== undefined && effort !== "none" && !capabilities.thinking) {
    throw new Fault("unsupported_parameter", {
      message: `The model '${model}' has no thinking mode, so 'reasoning_effort' can only be 'none'.`,
      param: "reasoning_effort",
    });
  }
}

function firstImage({ messages }: ChatBody): string | undefined {
  for (const [at, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    const part = content.findIndex(({ type }) => type === "image_url");
    if (part >= 0) return `messages[${at}].content[${part}]`;
  }
  return undefined;
}
