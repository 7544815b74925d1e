import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { toolChoice, toolsMax, type ChatBody, type ToolDefinition } from "#shared/protocol/chat-body.ts";

const namedTool = z.strictObject({
  type: z.literal("function"),
  function: z.strictObject({ name: z.string().min(1) }),
});

/** Which of the tools may be called, as OpenAI's clients write it. */
export const outerToolChoice = z.union([
  ...toolChoice.options,
  z.strictObject({
    type: z.literal("allowed_tools"),
    allowed_tools: z.strictObject({
      mode: z.enum(["auto", "required"]),
      tools: z.array(namedTool).min(1).max(toolsMax),
    }),
  }),
]);
type OuterToolChoice = z.infer<typeof outerToolChoice>;

interface Offered {
  readonly tools: readonly ToolDefinition[] | null | undefined;
  readonly tool_choice: OuterToolChoice | null | undefined;
}

/** The tools of a request and the choice among them, as machines are given them: those that may not be called are left out. */
export function chosenTools({ tools, tool_choice: choice }: Offered): Pick<ChatBody, "tools" | "tool_choice"> {
  if (choice === null || choice === undefined) return tools ? { tools: [...tools] } : {};
  if (!tools) {
    // To call none is what happens without tools anyway, and with them as the model likes.
    if (choice === "none" || choice === "auto") return {};
    throw new Fault("invalid_value", {
      message: "'tool_choice' is only allowed when 'tools' are given.",
      param: "tool_choice",
    });
  }
  if (typeof choice === "string") return { tools: [...tools], tool_choice: choice };
  if (choice.type === "function") {
    insistOnTool(tools, choice.function.name, "tool_choice.function.name");
    return { tools: [...tools], tool_choice: choice };
  }
  const { mode, tools: allowed } = choice.allowed_tools;
  for (const [place, tool] of allowed.entries()) {
    insistOnTool(tools, tool.function.name, `tool_choice.allowed_tools.tools[${place}].function.name`);
  }
  const names = new Set(allowed.map((tool) => tool.function.name));
  return { tools: tools.filter((tool) => names.has(tool.function.name)), tool_choice: mode };
}

function insistOnTool(tools: readonly ToolDefinition[], name: string, param: string): void {
  if (tools.some((tool) => tool.function.name === name)) return;
  throw new Fault("invalid_value", { message: `'${param}' names a function that is not among 'tools'.`, param });
}
