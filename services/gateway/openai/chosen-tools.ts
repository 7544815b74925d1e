import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody, ToolDefinition } from "#shared/protocol/chat-body.ts";

/** A tool by its name, and where in the request the name stands. */
interface Named {
  readonly name: string;
  readonly param: string;
}

/** Which of the tools may be called: as the model likes, none, at least one, this one, or some of these. */
export type Choice =
  | "auto"
  | "none"
  | "required"
  | Named
  | { readonly mode: "auto" | "required"; readonly allowed: readonly Named[] };

/** The tools of a request and the choice among them, as machines are given them: those that may not be called are left out. */
export function chosenTools(
  tools: readonly ToolDefinition[] | null | undefined,
  choice: Choice | undefined,
): Pick<ChatBody, "tools" | "tool_choice"> {
  if (choice === undefined) return tools ? { tools: [...tools] } : {};
  if (!tools) {
    // To call none is what happens without tools anyway, and with them as the model likes.
    if (choice === "none" || choice === "auto") return {};
    throw new Fault("invalid_value", {
      message: "'tool_choice' is only allowed when 'tools' are given.",
      param: "tool_choice",
    });
  }
  if (typeof choice === "string") return { tools: [...tools], tool_choice: choice };
  if ("name" in choice) {
    insistOnTool(tools, choice);
    return { tools: [...tools], tool_choice: { type: "function", function: { name: choice.name } } };
  }
  for (const each of choice.allowed) insistOnTool(tools, each);
  const names = new Set(choice.allowed.map(({ name }) => name));
  return { tools: tools.filter((tool) => names.has(tool.function.name)), tool_choice: choice.mode };
}

function insistOnTool(tools: readonly ToolDefinition[], { name, param }: Named): void {
  if (tools.some((tool) => tool.function.name === name)) return;
  throw new Fault("invalid_value", { message: `'${param}' names a function that is not among 'tools'.`, param });
}
