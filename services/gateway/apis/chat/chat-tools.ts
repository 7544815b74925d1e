import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import { functionOfChat, grammarsOfChat } from "../../chats/custom-tools.ts";
import { choiceOf, chosenTools } from "../../chats/request-tools.ts";
import { assertSchemaSize } from "../../requests/request-fields.ts";
import type { ChatRequest } from "./chat-schema.ts";

/** The tools of a chat request. */
export interface ChatTools {
  /** The fields of the job's body. */
  readonly chosen: Pick<ChatBody, "tools" | "tool_choice">;
  /** The names of the custom tools. */
  readonly custom: readonly string[];
  /** The paths of what no runtime enforces. */
  readonly ignored: readonly string[];
}

export const noTools: ChatTools = { chosen: {}, custom: [], ignored: [] };

/** Reads the tools of a chat request that has tools or a choice of one. */
export function readTools({ tools, tool_choice: choice }: ChatRequest): ChatTools {
  const given = tools ?? [];
  for (const [index, tool] of given.entries()) {
    if (tool.type === "function") assertSchemaSize(tool.function.parameters, `tools[${index}].function.parameters`);
  }
  return {
    chosen: chosenTools(given.map(functionOfChat), choice ? choiceOf(choice) : undefined),
    custom: given.flatMap((tool) => (tool.type === "custom" ? [tool.custom.name] : [])),
    ignored: grammarsOfChat(given),
  };
}
