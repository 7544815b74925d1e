import { z } from "zod";
import { toolDefinition, toolsMax, type ToolDefinition } from "#shared/protocol/chat-body.ts";
import type { Choice } from "../chosen-tools.ts";

const { name, description, parameters, strict } = toolDefinition.shape.function.shape;

/** A function that the model may call, as clients of the Responses API write it. */
export const responseTool = z.strictObject({
  type: z.literal("function"),
  name,
  description: description.nullable(),
  parameters: parameters.nullable(),
  strict,
});
export type ResponseTool = z.infer<typeof responseTool>;

const namedFunction = z.strictObject({ type: z.literal("function"), name: z.string().min(1) });

/** Which of the tools may be called, as they write it. */
export const responseToolChoice = z.union([
  z.enum(["auto", "none", "required"]),
  namedFunction,
  z.strictObject({
    type: z.literal("allowed_tools"),
    mode: z.enum(["auto", "required"]),
    tools: z.array(namedFunction).min(1).max(toolsMax),
  }),
]);
export type ResponseToolChoice = z.infer<typeof responseToolChoice>;

/** A tool as machines are given it. */
export function innerTool({
  name: called,
  description: told,
  parameters: takes,
  strict: exact,
}: ResponseTool): ToolDefinition {
  return {
    type: "function",
    function: {
      name: called,
      ...(told ? { description: told } : {}),
      ...(takes ? { parameters: takes } : {}),
      ...(typeof exact === "boolean" ? { strict: exact } : {}),
    },
  };
}

export function choiceOf(choice: ResponseToolChoice): Choice {
  if (typeof choice === "string") return choice;
  if (choice.type === "function") return { name: choice.name, param: "tool_choice.name" };
  const { mode, tools } = choice;
  return {
    mode,
    allowed: tools.map((tool, place) => ({ name: tool.name, param: `tool_choice.tools[${place}].name` })),
  };
}
