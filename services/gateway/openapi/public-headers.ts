const remaining = "never less than none, and no promise: other requests of the key count too";

/** All response headers that matter to clients of this API, by the names that official clients use. */
export const answerHeaders = {
  "x-request-id": {
    description:
      "The name of this request in the operator's log. Every answer has one; quote it when you ask about it.",
    example: "req_Jx2vRkQ0",
  },
  "request-id": {
    description: "The same as `x-request-id`, where Anthropic's clients look for it.",
    example: "req_Jx2vRkQ0",
  },
  "openai-processing-ms": {
    description: "The milliseconds from the request's arrival to the first byte of its answer.",
    example: 212,
  },
  "retry-after": {
    description: "Seconds to wait before the same request has a chance. Official clients wait by themselves.",
    example: 5,
  },
  "x-should-retry": {
    description: "`false` where the same request would fail in the same way; official clients then do not repeat it.",
    example: "false",
  },
  "www-authenticate": {
    description: "`Bearer`: what a request without a valid key lacks.",
    example: "Bearer",
  },
  allow: {
    description: "The methods that the URL has, where the one that was sent is not among them.",
    example: "POST",
  },
  "x-ratelimit-limit-requests": {
    description: "Requests that the key may send a minute; absent, like those below, where it has no such limit.",
    example: 60,
  },
  "x-ratelimit-remaining-requests": {
    description: `The rest of these requests just now: ${remaining}.`,
    example: 59,
  },
  "x-ratelimit-reset-requests": {
    description: "Time until all of these requests are there again, such as `1s` or `6m0s`.",
    example: "1s",
  },
  "x-ratelimit-limit-tokens": {
    description: "Tokens that the key may use a minute, prompts and answers together.",
    example: 100_000,
  },
  "x-ratelimit-remaining-tokens": {
    description: `The rest of these tokens just now: ${remaining}. A request that runs has reserved the most that it may use.`,
    example: 98_976,
  },
  "x-ratelimit-reset-tokens": {
    description: "Time until all of these tokens are there again.",
    example: "615ms",
  },
  "x-trunkline-ignored": {
    description:
      "The fields of the request that mean nothing here and were left out, by their paths and with commas between, such as `user,metadata`.",
    example: "user,metadata",
  },
  "x-trunkline-machine": {
    description: "The machine that gave the answer, or the last one that failed to; absent where none was asked.",
    example: "attic",
  },
  "x-trunkline-model": {
    description:
      "The model that gave the answer, percent-encoded, where the operator lets the name that was asked for stand for others; absent otherwise.",
    example: "qwen3-coder:30b",
  },
  "x-trunkline-limit": {
    description:
      "The limit of the key that ended the answer early, with the finish reason of `max_tokens`: `tokens` of a minute, or `budget`. In a stream it is a comment, `: x-trunkline-limit: budget`.",
    example: "budget",
  },
  "x-trunkline-estimate": {
    description: "`true` where the answer is a number of tokens that no machine counted. It is estimated from above.",
    example: "true",
  },
  "x-trunkline-resumable": {
    description: "`1` where the stream can be resumed: its events have ids.",
    example: "1",
  },
  "idempotent-replayed": {
    description: "`true` where the answer was made for an earlier request with the same `Idempotency-Key`.",
    example: "true",
  },
  "x-trunkline-unanswered": {
    description: "The machines that did not answer in time, so that what only they offer is not in the list.",
    example: "attic",
  },
} as const satisfies Record<string, { readonly description: string; readonly example: string | number }>;

export type AnswerHeaderName = keyof typeof answerHeaders;

/** The optional headers of any request under `/v1`, besides the key. */
export const requestHeaders = {
  "x-client-request-id": {
    name: "x-client-request-id",
    in: "header",
    required: false,
    description:
      "Your own name for the request: the operator finds the request by it, in printable ASCII. One that is longer than `clientRequestCharactersMax` is left out of the log.",
    schema: { type: "string" },
  },
  "x-trunkline-resumable": {
    name: "x-trunkline-resumable",
    in: "header",
    required: false,
    description: "`1` asks for a stream of a chat, a response or a message that can be resumed; see Streams.",
    schema: { type: "string", enum: ["1"] },
  },
  "last-event-id": {
    name: "last-event-id",
    in: "header",
    required: false,
    description:
      "The id of the last event that came of an answer that can be resumed. The same request with it gets the rest of that answer, at any gateway of the site.",
    schema: { type: "string" },
  },
  "idempotency-key": {
    name: "idempotency-key",
    in: "header",
    required: false,
    description:
      "Your own name for the answer to a chat, a response or a message, unique for your key, of at most 255 characters. A repeat of the request with it gets the same answer and makes no other; see Requests.",
    schema: { type: "string", maxLength: 255 },
  },
  "anthropic-version": {
    name: "anthropic-version",
    in: "header",
    required: false,
    description:
      "Sent by Anthropic's clients, in any version. Models and errors then have the shape of the Messages API at every endpoint.",
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
