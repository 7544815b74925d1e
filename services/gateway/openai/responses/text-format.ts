import { z } from "zod";
import { responseFormat, type ChatBody } from "#shared/protocol/chat-body.ts";

const [text, jsonObject, jsonSchema] = responseFormat.options;

/** What form a text is to have, as clients of the Responses API write it: a schema stands beside its type. */
export const outerTextFormat = z.discriminatedUnion("type", [
  text,
  jsonObject,
  jsonSchema.shape.json_schema.extend({ type: z.literal("json_schema") }),
]);
export type TextFormat = z.infer<typeof outerTextFormat>;

/** The same as machines are told. */
export function innerTextFormat(format: TextFormat | null | undefined): Pick<ChatBody, "response_format"> {
  if (!format) return {};
  if (format.type !== "json_schema") return { response_format: format };
  const { type, ...schema } = format;
  return { response_format: { type, json_schema: schema } };
}
