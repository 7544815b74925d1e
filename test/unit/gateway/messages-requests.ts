import { readMessageRequest } from "../../../services/gateway/apis/messages/message-request.ts";
import { reading } from "./reading-requests.ts";

export const used = (id: string, input: object = {}) => ({ type: "tool_use", id, name: "weather", input });
export const gave = (id: string, fields: object = {}) => ({
  type: "tool_result",
  tool_use_id: id,
  content: "12 °C",
  ...fields,
});
export const weather = { name: "weather", description: "The weather", input_schema: { type: "object" } };

const usual = { model: "llama3", max_tokens: 64, messages: [{ role: "user", content: "Hello" }] };
export const { read: readMessage, thrownBy, faultOf } = reading(readMessageRequest, usual);
