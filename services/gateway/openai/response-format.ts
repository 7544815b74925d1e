import { z } from "zod";
import { responseFormat, type ChatBody } from "#shared/protocol/chat-body.ts";

const [text, jsonObject, jsonSchema] = responseFormat.options;

/** The response format as clients write it. Some clients send a schema together with `json_object`. */
export const outerResponseFormat = z.discriminatedUnion("type", [
  text,
  jsonObject.extend({ schema: jsonSchema.shape.json_schema.shape.schema }),
  jsonSchema,
]);

/** Returns the response format in the one form that machines get: any schema becomes a `json_schema`. */
export function innerResponseFormat(
  format: z.infer<typeof outerResponseFormat> | null | undefined,
): Pick<ChatBody, "response_format"> {
  if (format === null || format === undefined) return {};
  if (format.type !== "json_object" || format.schema === undefined) return { response_format: format };
  return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: format.schema } } };
}
