import { Fault } from "#shared/fault/fault.ts";
import { contentText, type ChatMessage } from "#shared/protocol/chat-body.ts";
import type { CallSyntax, TemplateMessage } from "./gguf-call-syntax.ts";

/** Returns the messages in the form that chat templates expect. */
export function templateMessages(
  messages: readonly ChatMessage[],
  argumentsAs: CallSyntax["argumentsAs"],
): TemplateMessage[] {
  const nameByCall = new Map<string, string>();
  return messages.map((message, at) => {
    const content = contentText(message.content);
    switch (message.role) {
      case "system":
      case "user":
        return { role: message.role, content, ...(message.name !== undefined && { name: message.name }) };
      case "assistant": {
        const { tool_calls: calls, reasoning_content: reasoning } = message;
        for (const { id, function: called } of calls ?? []) nameByCall.set(id, called.name);
        return {
          role: "assistant",
          content,
          ...(reasoning && { reasoning_content: reasoning }),
          ...(calls && {
            tool_calls: calls.map((call, index) => {
              const path = `messages[${at}].tool_calls[${index}].function.arguments`;
              const given = argumentsObject(call.function.arguments, path);
              const forTemplate = argumentsAs === "object" ? given : JSON.stringify(given);
              return { ...call, function: { name: call.function.name, arguments: forTemplate } };
            }),
          }),
        };
      }
      case "tool": {
        const id = message.tool_call_id;
        return { role: "tool", content, tool_call_id: id, name: nameByCall.get(id) ?? id };
      }
    }
  });
}

function argumentsObject(text: string, path: string): object {
  if (text.trim() === "") return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Invalid JSON gets the fault below, like JSON that is not an object.
  }
  throw new Fault("invalid_value", { message: `'${path}' must be a JSON object, as a string.`, param: path });
}
