import { z } from "zod";
import { grammarCharactersMax } from "#shared/protocol/job-bodies.ts";
import { outerTool } from "../request-tools.ts";

const { name, description } = outerTool.shape.function.shape;

/** A tool that takes one text, such as a patch, as clients of the Responses API write it. */
export const customTool = z.object({
  type: z.literal("custom"),
  name,
  description: description.nullable(),
  format: z
    .discriminatedUnion("type", [
      z.object({ type: z.literal("text") }),
      z.object({
        type: z.literal("grammar"),
        syntax: z.enum(["lark", "regex"]).describe("The language of the grammar."),
        definition: z.string().max(grammarCharactersMax).describe("The grammar itself."),
      }),
    ])
    .nullish()
    .describe("The form of the text. A grammar is told to the model, and no runtime holds it to that."),
});
export type CustomTool = z.infer<typeof customTool>;

/** The parameters of a custom tool towards a model: models call functions with JSON only. */
export const customParameters = {
  type: "object",
  properties: { input: { type: "string", description: "The whole text that the tool takes." } },
  required: ["input"],
  additionalProperties: false,
};

/** Returns the description of a custom tool for a model, which reads the grammar of the text in it. */
export function customDescription({ description: own, format }: CustomTool): string {
  const rule =
    format?.type === "grammar" ? `'input' must match this ${format.syntax} grammar:\n${format.definition}` : "";
  return [own, rule].filter(Boolean).join("\n\n");
}

/** Returns the call of a custom tool in an earlier turn as a model wrote it. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

/** Returns the text that a model gave a custom tool. A model that wrote the bare text in place of JSON meant that. */
export function customInput(given: string): string {
  try {
    const { input }: { input?: unknown } = Object(JSON.parse(given));
    return typeof input === "string" ? input : given;
  } catch {
    return given;
  }
}
