import { z } from "zod";
import { responseFormat, type ChatBody } from "#shared/protocol/chat-body.ts";

const [text, jsonObject, jsonSchema] = responseFormat.options;

/** The text format as clients of the Responses API write it. The schema's fields stand beside `type`. */
export const outerTextFormat = z.discriminatedUnion("type", [
  text,
  jsonObject,
  jsonSchema.shape.json_schema.extend({ type: z.literal("json_schema") }),
]);
export type TextFormat = z.infer<typeof outerTextFormat>;

/** Converts the text format to the `response_format` that machines get. */
export function innerTextFormat(format: TextFormat | null | undefined): Pick<ChatBody, "response_format"> {
  if (!format) return {};
  if (format.type !== "json_schema") return { response_format: format };
  const { type, ...schema } = format;
  return { response_format: { type, json_schema: schema } };
}
