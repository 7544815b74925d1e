import type { Parameter } from "./openapi-document.ts";

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
