import { z } from "zod";
import { toolChoice, toolsMax, type ChatBody, type ToolDefinition } from "#shared/protocol/job-bodies.ts";
import { Fault } from "#shared/fault/fault.ts";

const namedTool = z.object({
  type: z.literal("function"),
  function: z.object({ name: z.string().min(1) }),
});

/** The tool choice as OpenAI's clients write it. */
export const outerToolChoice = z.union([
  ...toolChoice.options,
  z.object({
    type: z.literal("allowed_tools"),
    allowed_tools: z.object({
      mode: z.enum(["auto", "required"]),
      tools: z.array(namedTool).min(1).max(toolsMax),
    }),
  }),
]);

/** Converts the tool choice to a `Choice`, which `chosenTools` reads. */
export function choiceOf(choice: z.infer<typeof outerToolChoice>): Choice {
  if (typeof choice === "string") return choice;
  if (choice.type === "function") return { name: choice.function.name, param: "tool_choice.function.name" };
  const { mode, tools } = choice.allowed_tools;
  return {
    mode,
    allowed: tools.map(({ function: { name } }, place) => ({
      name,
      param: `tool_choice.allowed_tools.tools[${place}].function.name`,
    })),
  };
}

/** A tool's name, and the path of that name in the request. */
interface Named {
  readonly name: string;
  readonly param: string;
}

/**
 * The tools that the model may call: `auto` leaves it to the model, `none` is no tool, `required` is at least one.
 * `Named` is this one tool, and `allowed` is some of the tools.
 */
export type Choice =
  | "auto"
  | "none"
  | "required"
  | Named
  | { readonly mode: "auto" | "required"; readonly allowed: readonly Named[] };

/**
 * Returns the tools of a request and its tool choice in the form that machines get. Leaves out tools that may not be
 * called.
 */
export function chosenTools(
  tools: readonly ToolDefinition[] | null | undefined,
  choice: Choice | undefined,
): Pick<ChatBody, "tools" | "tool_choice"> {
  if (choice === undefined) return tools ? { tools: [...tools] } : {};
  if (!tools) {
    // Without tools the model calls none anyway, so `none` and `auto` change nothing.
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
