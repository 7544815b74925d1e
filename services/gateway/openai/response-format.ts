import { z } from "zod";
import { responseFormat, type ChatBody } from "#shared/protocol/chat-body.ts";

const [text, jsonObject, jsonSchema] = responseFormat.options;

/** What form an answer is to have, as clients write it: some give a schema together with `json_object`. */
export const outerResponseFormat = z.discriminatedUnion("type", [
  text,
  jsonObject.extend({ schema: jsonSchema.shape.json_schema.shape.schema }),
  jsonSchema,
]);

/** The same in the one way that machines are told: a schema is a schema. */
export function innerResponseFormat(
  format: z.infer<typeof outerResponseFormat> | null | undefined,
): Pick<ChatBody, "response_format"> {
  if (format === null || format === undefined) return {};
  if (format.type !== "json_object" || format.schema === undefined) return { response_format: format };
  return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: format.schema } } };
}
