import { z } from "zod";
import { toolChoice, toolsMax } from "#shared/protocol/chat-body.ts";
import type { Choice } from "./chosen-tools.ts";

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
