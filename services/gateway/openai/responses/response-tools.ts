import { z } from "zod";
import { toolDefinition, toolsMax } from "#shared/protocol/chat-body.ts";

const { name, description, parameters, strict } = toolDefinition.shape.function.shape;

/** A function that the model may call, as clients of the Responses API write it. */
export const functionTool = z.object({
  type: z.literal("function"),
  name,
  description: description.nullable(),
  parameters: parameters.nullable(),
  strict,
});
export type FunctionTool = z.infer<typeof functionTool>;

/** Functions in one namespace. */
export const namespaceTool = z.object({
  type: z.literal("namespace"),
  name,
  description: description.nullable(),
  tools: z.array(functionTool).min(1).max(toolsMax),
});

/** A web search tool, which some clients offer by habit to every server. It is ignored, and the client is told so. */
const webSearchTool = z.looseObject({
  type: z.enum(["web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11"]),
});

export const responseTool = z.discriminatedUnion("type", [functionTool, namespaceTool, webSearchTool]);
export type ResponseTool = z.infer<typeof responseTool>;
/** A tool that the client runs itself. */
export type OwnTool = FunctionTool | z.infer<typeof namespaceTool>;

export function isOwnTool(tool: ResponseTool): tool is OwnTool {
  return tool.type === "function" || tool.type === "namespace";
}

const namedFunction = z.object({ type: z.literal("function"), name: z.string().min(1) });

/** The tool choice as clients of the Responses API write it. */
export const responseToolChoice = z.union([
  z.enum(["auto", "none", "required"]),
  namedFunction,
  z.object({
    type: z.literal("allowed_tools"),
    mode: z.enum(["auto", "required"]),
    tools: z.array(namedFunction).min(1).max(toolsMax),
  }),
]);
export type ResponseToolChoice = z.infer<typeof responseToolChoice>;
