import { z } from "zod";
import { error } from "../apis/openai-answers.ts";
import { type ApiDescription, get } from "../apis/description.ts";

const health = z.object({
  status: z.literal("ok").describe("Always `ok`: a process that does not run says nothing."),
});
const readiness = z.object({
  ready: z.boolean(),
  checks: z.object({ serving: z.boolean(), broker: z.boolean(), keys: z.boolean() }),
  reasons: z.array(z.string()),
});

export const describeHealth: ApiDescription = {
  tag: "Health",
  description: "For balancers, without a key.",
  open: true,
  schemas: [{ health, readiness, error }],
  operations: [
    get("getHealth", "/healthz", health, {
      text: "See that this gateway runs. Asks no machine and no store.",
    }),
    get("getReadiness", "/readyz", readiness, {
      answersWith: 503,
      text: "See whether this gateway can serve. For balancers. Machines are not asked: a gateway is not taken out because they are away.",
    }),
    get("getHealthAsBenchmarksDo", "/health", readiness, {
      answersWith: 503,
      text: "The same, where benchmarks look for it. Answers as `/readyz` does.",
    }),
  ],
};

export const describeReference: ApiDescription = {
  tag: "Reference",
  description: "The description of this API, without a key.",
  open: true,
  schemas: [],
  operations: [
    get("getOpenApi", "/openapi.json", "application/json", {
      text: "Read this document. OpenAPI 3.1, written from the schemas that requests are read with.",
    }),
    get("getDocs", "/docs", "text/html", {
      text: "Read it as a page. One page for people, made of the document.",
    }),
  ],
};
