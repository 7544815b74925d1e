import { expect, test } from "vitest";
import { chatBody } from "#shared/protocol/chat-body.ts";
import { encodeJson } from "#shared/protocol/frame-payload.ts";
import { readBody } from "../../../services/agent/jobs/read-body.ts";
import { readJsonObject } from "../../../services/gateway/intake/read-json.ts";
import { readChatRequest } from "../../../services/gateway/openai/chat-request.ts";

test("an integer of 64 bits in a schema reaches the runtime with all of its digits, from the client on", () => {
  const schema = '{"type":"integer","maximum":9223372036854775807,"enum":[18446744073709551615,1]}';
  const tool = `{"type":"function","function":{"name":"f","parameters":${schema}}}`;
  const format = `{"type":"json_schema","json_schema":{"name":"n","schema":${schema}}}`;
  const says = '[{"role":"user","content":"Hello"}]';
  const sent = `{"model":"m","messages":${says},"tools":[${tool}],"response_format":${format}}`;
  const { body } = readChatRequest(readJsonObject(Buffer.from(sent)));
  const heard = readBody(chatBody, encodeJson(body));
  expect(JSON.stringify(heard.tools)).toBe(`[${tool}]`);
  expect(JSON.stringify(heard.response_format)).toBe(format);
});
