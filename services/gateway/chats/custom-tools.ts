import { z } from "zod";
import { grammarCharactersMax, toolCall, type ToolDefinition } from "#shared/protocol/job-bodies.ts";
import { innerTool, type OuterFunction, outerTool, outerToolName } from "./request-tools.ts";

// A custom tool takes one text, such as a patch. Models call functions with JSON only, so they get a function of one text.

export const grammarFields = {
  syntax: z.enum(["lark", "regex"]).describe("The language of the grammar."),
  definition: z.string().max(grammarCharactersMax).describe("The grammar itself."),
};
export const formOfText = "The form of the text. A grammar is told to the model, and no runtime holds it to that.";
const plainText = z.object({ type: z.literal("text") });
const grammarOfChat = z.object({ type: z.literal("grammar"), grammar: z.object(grammarFields) });

const chatCustomTool = z.object({
  type: z.literal("custom"),
  custom: z.object({
    name: outerToolName,
    description: z.string().nullish(),
    format: z.discriminatedUnion("type", [plainText, grammarOfChat]).nullish().describe(formOfText),
  }),
});

/** A tool of a chat as clients write it. */
export const chatTool = z.discriminatedUnion("type", [outerTool, chatCustomTool]);
type ChatTool = z.infer<typeof chatTool>;

const customCall = z.object({
  id: toolCall.shape.id,
  type: z.literal("custom"),
  custom: z.object({ name: z.string().min(1), input: z.string().describe("The text for the tool.") }),
});
/** A call of a tool in a chat as clients read and write it. */
export const chatCall = z.discriminatedUnion("type", [toolCall, customCall]);
export type ChatCall = z.infer<typeof chatCall>;

/** Returns a tool of a chat as a function. */
export function functionOfChat(tool: ChatTool): ToolDefinition {
  if (tool.type === "function") return tool;
  const { name, description, format } = tool.custom;
  return innerTool(customFunction({ name, description }, format?.type === "grammar" ? format.grammar : undefined));
}

/** Returns an earlier call of a chat as the call of a function. */
export function functionCall(call: ChatCall): z.infer<typeof toolCall> {
  if (call.type === "function") return call;
  const { name, input } = call.custom;
  return { id: call.id, type: "function", function: { name, arguments: JSON.stringify({ input }) } };
}

/** Returns the paths of the grammars of a chat's tools, which the model reads and no runtime enforces. */
export function grammarsOfChat(tools: readonly ChatTool[]): string[] {
  return tools.flatMap((tool, index) =>
    tool.type === "custom" && tool.custom.format?.type === "grammar" ? [`tools[${index}].custom.format`] : [],
  );
}

/** Returns a custom tool as a function, whose description has the grammar of the text. */
export function customFunction(
  { name, description }: Pick<OuterFunction, "name" | "description">,
  grammar: { readonly syntax: string; readonly definition: string } | undefined,
): OuterFunction {
  const rule = grammar && `'input' must match this ${grammar.syntax} grammar:\n${grammar.definition}`;
  return { name, description: [description, rule].filter(Boolean).join("\n\n"), parameters: customParameters };
}

const customParameters = {
  type: "object",
  properties: { input: { type: "string", description: "The whole text that the tool takes." } },
  required: ["input"],
  additionalProperties: false,
};

/** Returns the text that a model gave a custom tool. A model that wrote the bare text in place of JSON meant that. */
export function customInput(given: string): string {
  try {
    const { input }: { input?: unknown } = Object(JSON.parse(given));
    return typeof input === "string" ? input : given;
  } catch {
    return given;
  }
}
