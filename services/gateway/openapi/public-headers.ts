const remaining = "never less than none, and no promise: other requests of the key count too";

function header(description: string, example: string | number) {
  return { description, schema: { type: typeof example === "number" ? "integer" : "string" }, example };
}

/** All response headers that matter to clients of this API, by the names that official clients use. */
export const answerHeaders = {
  "x-request-id": header(
    "The name of this request in the operator's log. Every answer has one; quote it when you ask about it.",
    "req_Jx2vRkQ0",
  ),
  "request-id": header("The same as `x-request-id`, where Anthropic's clients look for it.", "req_Jx2vRkQ0"),
  "openai-processing-ms": header("The milliseconds from the request's arrival to the first byte of its answer.", 212),
  "retry-after": header(
    "Seconds to wait before the same request has a chance. Official clients wait by themselves.",
    5,
  ),
  "x-should-retry": header(
    "`false` where the same request would fail in the same way; official clients then do not repeat it.",
    "false",
  ),
  "www-authenticate": header("`Bearer`: what a request without a valid key lacks.", "Bearer"),
  allow: header("The methods that the URL has, where the one that was sent is not among them.", "POST"),
  "x-ratelimit-limit-requests": header(
    "Requests that the key may send a minute; absent, like those below, where it has no such limit.",
    60,
  ),
  "x-ratelimit-remaining-requests": header(`The rest of these requests just now: ${remaining}.`, 59),
  "x-ratelimit-reset-requests": header(
    "Time until all of these requests are there again, such as `1s` or `6m0s`.",
    "1s",
  ),
  "x-ratelimit-limit-tokens": header("Tokens that the key may use a minute, prompts and answers together.", 100_000),
  "x-ratelimit-remaining-tokens": header(
    `The rest of these tokens just now: ${remaining}. A request that runs has reserved the most that it may use.`,
    98_976,
  ),
  "x-ratelimit-reset-tokens": header("Time until all of these tokens are there again.", "615ms"),
  "x-trunkline-ignored": header(
    "The fields of the request that mean nothing here and were left out, by their paths and with commas between, such as `user,metadata`.",
    "user,metadata",
  ),
  "x-trunkline-machine": header(
    "The machine that gave the answer, or the last one that failed to; absent where none was asked.",
    "attic",
  ),
  "x-trunkline-model": header(
    "The model that gave the answer, percent-encoded, where the operator lets the name that was asked for stand for others; absent otherwise.",
    "qwen3-coder:30b",
  ),
  "x-trunkline-limit": header(
    "The limit of the key that ended the answer early, with the finish reason of `max_tokens`: `tokens` of a minute, or `budget`. In a stream it is a comment, `: x-trunkline-limit: budget`.",
    "budget",
  ),
  "x-trunkline-estimate": header(
    "`true` where the answer is a number of tokens that no machine counted. It is estimated from above.",
    "true",
  ),
  "x-trunkline-resumable": header("`1` where the stream can be resumed: its events have ids.", "1"),
  "idempotent-replayed": header(
    "`true` where the answer was made for an earlier request with the same `Idempotency-Key`.",
    "true",
  ),
  "x-trunkline-unanswered": header(
    "The machines that did not answer in time, so that what only they offer is not in the list.",
    "attic",
  ),
};

export type AnswerHeaderName = keyof typeof answerHeaders;

const requestHeaderMeanings = {
  "x-client-request-id":
    "Your own name for the request: the operator finds the request by it, in printable ASCII. One that is longer than `clientRequestCharactersMax` is left out of the log.",
  "x-trunkline-resumable": "`1` asks for a stream of a chat, a response or a message that can be resumed; see Streams.",
  "last-event-id":
    "The id of the last event that came of an answer that can be resumed. The same request with it gets the rest of that answer, at any gateway of the site.",
  "idempotency-key":
    "Your own name for the answer to a chat, a response or a message, unique for your key, of at most 255 characters. A repeat of the request with it gets the same answer and makes no other; see Requests.",
  "anthropic-version":
    "Sent by Anthropic's clients, in any version. Models and errors then have the shape of the Messages API at every endpoint.",
  traceparent: "The trace that the request belongs to, in the form of W3C's Trace Context; it is passed on.",
};

const requestHeaderBounds: Readonly<Partial<Record<string, object>>> = {
  "x-trunkline-resumable": { enum: ["1"] },
  "idempotency-key": { maxLength: 255 },
};

/** The optional headers of any request under `/v1`, besides the key. */
export const requestHeaders = Object.fromEntries(
  Object.entries(requestHeaderMeanings).map(([name, description]) => {
    const schema = { type: "string", ...requestHeaderBounds[name] };
    return [name, { name, in: "header", required: false, description, schema }];
  }),
);
