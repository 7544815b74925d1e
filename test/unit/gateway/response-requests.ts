import { readResponseRequest } from "../../../services/gateway/apis/responses/response-request.ts";
import { reading } from "./reading-requests.ts";

export const called = (id: string) => ({ type: "function_call", call_id: id, name: "weather", arguments: "{}" });
export const gave = (id: string) => ({ type: "function_call_output", call_id: id, output: "12 °C" });
export const weather = { type: "function", name: "weather", parameters: { type: "object" } };

const responses = reading(readResponseRequest, { model: "llama3", input: "Hello" });
export const { read: readResponse, thrownBy, faultOf } = responses;
