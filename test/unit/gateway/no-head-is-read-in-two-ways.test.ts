import { expect, test } from "vitest";
import {
  framingFault,
  headerLinesMax,
  headersBytesMax,
  requestsAheadMax,
  urlBytesMax,
  type RequestHead,
} from "../../../services/gateway/http/guard-edge.ts";

/** A head as Node reads it: every header line as it came, and the first of each name. */
function head(lines: readonly (readonly [string, string])[] = [], given: Partial<RequestHead> = {}): RequestHead {
  const all: (readonly [string, string])[] = [["Host", "a"], ...lines];
  const headers: Record<string, string> = {};
  for (const [name, value] of all) headers[name.toLowerCase()] ??= value;
  const usual = { method: "GET", url: "/v1/models", httpVersion: "1.1", answersUnderWay: 1 };
  return { ...usual, rawHeaders: all.flat(), headers, ...given };
}

const codeOf = (of: RequestHead): string | undefined => framingFault(of)?.code;

const bytesAround = "Host: a\r\nX: \r\n".length;
test.each<[limit: string, max: number, code: string, of: (size: number) => RequestHead]>([
  [
    "headerLinesMax",
    headerLinesMax,
    "headers_too_large",
    (size) => head(Array.from({ length: size - 1 }, () => ["X", ""] as const)),
  ],
  ["headersBytesMax", headersBytesMax, "headers_too_large", (size) => head([["X", "x".repeat(size - bytesAround)]])],
  ["urlBytesMax", urlBytesMax, "uri_too_long", (size) => head([], { url: "/".padEnd(size, "x") })],
  ["requestsAheadMax", requestsAheadMax, "bad_request", (size) => head([], { answersUnderWay: size })],
])("each limit is exact, and named when it is hit %s", (limit, max, code, of) => {
  expect(codeOf(of(max))).toBeUndefined();
  expect(codeOf(of(max + 1))).toBe(code);
  expect(framingFault(of(max + 1))?.message).toContain(limit);
});

test.each(["host", "authorization", "content-type", "content-encoding", "transfer-encoding", "expect"])(
  "two %s headers are refused, also when they say the same",
  (name) => {
    const value = name === "host" ? "a" : "chunked";
    const line = [name.toUpperCase(), value] as const;
    expect(codeOf(head(name === "host" ? [line] : [line, line]))).toBe("bad_request");
  },
);

test("two headers that may be lists are not", () => {
  expect(
    codeOf(
      head([
        ["Accept", "a"],
        ["Accept", "b"],
        ["Cookie", "a=b"],
        ["Cookie", "c=d"],
      ]),
    ),
  ).toBeUndefined();
});
