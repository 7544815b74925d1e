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
  open: true,
  schemas: [{ health, readiness, error }],
  operations: [
    get("getHealth", "/healthz", health),
    get("getReadiness", "/readyz", readiness, { answersWith: 503 }),
    get("getHealthAsBenchmarksDo", "/health", readiness, { answersWith: 503 }),
  ],
};

export const describeReference: ApiDescription = {
  tag: "Reference",
  open: true,
  schemas: [],
  operations: [
    get("getOpenApi", "/openapi.json", z.looseObject({})),
    get("getDocs", "/docs", z.string(), { media: "text/html" }),
  ],
};
