import { STATUS_CODES } from "node:http";
import { faultEntry } from "#shared/fault/fault-code.ts";
import type { Fault } from "#shared/fault/fault.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import { faultBody, faultHeaders } from "../openai/fault-body.ts";
import { noSniffing, processingHeader } from "./timed-response.ts";

/**
 * Returns the whole HTTP answer, head and body, to input that never became a request. Its connection closes after it.
 */
export function rawAnswer(fault: Fault, headers: Readonly<Record<string, string>> = {}): string {
  const { status } = faultEntry(fault.code);
  const body = JSON.stringify(faultBody(fault));
  const all = {
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    "x-request-id": newToken("req_"),
    [processingHeader]: "0",
    [noSniffing[0]]: noSniffing[1],
    ...faultHeaders(fault),
    ...headers,
    connection: "close",
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return `${[`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Error"}`, ...lines].join("\r\n")}\r\n\r\n${body}`;
}
