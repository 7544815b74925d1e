import { STATUS_CODES } from "node:http";
import { faultEntry } from "#shared/fault/fault-code.ts";
import type { Fault } from "#shared/fault/fault.ts";
import { newToken } from "#shared/protocol/token.ts";
import { faultBody, faultHeaders } from "../openai/fault-body.ts";
import { processingHeader } from "./timed-response.ts";

/** The answer to what never became a request, byte for byte as it goes out on a connection that closes after it. */
export function rawAnswer(fault: Fault, headers: Readonly<Record<string, string>> = {}): string {
  const { status } = faultEntry(fault.code);
  const body = JSON.stringify(faultBody(fault));
  const all = {
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    "x-request-id": newToken("req_"),
    [processingHeader]: "0",
    ...faultHeaders(fault),
    ...headers,
    connection: "close",
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `${[`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`, ...lines].join("\r\n")}\r\n\r\n${body}`;
}
