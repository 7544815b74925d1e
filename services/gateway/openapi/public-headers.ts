import type { Parameter } from "./openapi-document.ts";

/** The documentation of a response header. */
interface AnswerHeader {
  readonly description: string;
  readonly type: "string" | "integer";
  readonly example: string | number;
}

const remaining = "never less than none, and no promise: other requests of the key count too";

/** All response headers that matter to clients of this API, by the names that official clients use. */
export const answerHeaders = {
  "x-request-id": {
    description:
      "The name of this request in the operator's log. Every answer has one; quote it when you ask about it.",
    type: "string",
    example: "req_Jx2vRkQ0",
  },
  "openai-processing-ms": {
    description: "The milliseconds from the request's arrival to the first byte of its answer.",
    type: "integer",
    example: 212,
  },
  "retry-after": {
    description: "How many seconds to wait before the same request has a chance. Official clients wait by themselves.",
    type: "integer",
    example: 5,
  },
  "x-should-retry": {
    description: "`false` where the same request would fail in the same way; official clients then do not repeat it.",
    type: "string",
    example: "false",
  },
  "www-authenticate": {
    description: "`Bearer`: what a request without a valid key lacks.",
    type: "string",
    example: "Bearer",
  },
  allow: {
    description: "The methods that the URL has, where the one that was sent is not among them.",
    type: "string",
    example: "POST",
  },
  "x-ratelimit-limit-requests": {
    description: "How many requests the key may send a minute; absent, like those below, where it has no such limit.",
    type: "integer",
    example: 60,
  },
  "x-ratelimit-remaining-requests": {
    description: `How many of these requests are left just now: ${remaining}.`,
    type: "integer",
    example: 59,
  },
  "x-ratelimit-reset-requests": {
    description: "How long until all of these requests are there again, such as `1s` or `6m0s`.",
    type: "string",
    example: "1s",
  },
  "x-ratelimit-limit-tokens": {
    description: "How many tokens the key may use a minute, prompts and answers together.",
    type: "integer",
    example: 100_000,
  },
  "x-ratelimit-remaining-tokens": {
    description: `How many of these tokens are left just now: ${remaining}. A request that runs has reserved the most that it may use.`,
    type: "integer",
    example: 98_976,
  },
  "x-ratelimit-reset-tokens": {
    description: "How long until all of these tokens are there again.",
    type: "string",
    example: "615ms",
  },
  "x-trunkline-ignored": {
    description:
      "The fields of the request that mean nothing here and were left out, by their paths and with commas between, such as `user,metadata`.",
    type: "string",
    example: "user,metadata",
  },
  "x-trunkline-machine": {
    description: "The machine that gave the answer, or the last one that failed to; absent where none was asked.",
    type: "string",
    example: "attic",
  },
  "x-trunkline-unanswered": {
    description: "The machines that did not answer in time, so that what only they offer is not in the list.",
    type: "string",
    example: "attic",
  },
} as const satisfies Record<string, AnswerHeader>;

export type AnswerHeaderName = keyof typeof answerHeaders;

/** The optional headers of any request under `/v1`, besides the key. */
export const requestHeaders: Readonly<Record<string, Parameter>> = {
  "x-client-request-id": {
    name: "x-client-request-id",
    in: "header",
    required: false,
    description:
      "Your own name for the request: the operator finds the request by it, in printable ASCII. One that is longer than `clientRequestCharactersMax` is left out of the log.",
    schema: { type: "string" },
  },
  traceparent: {
    name: "traceparent",
    in: "header",
    required: false,
    description: "The trace that the request belongs to, in the form of W3C's Trace Context; it is passed on.",
    schema: { type: "string" },
  },
};
