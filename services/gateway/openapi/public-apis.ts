import { z } from "zod";
import type { Api } from "../apis/api.ts";
import { apis } from "../apis/apis.ts";
import { type ApiDescription, get } from "../apis/description.ts";
import { error } from "../apis/openai-answers.ts";

const health = z.object({
  status: z.literal("ok").describe("Always `ok`: a process that does not run says nothing."),
});
const readiness = z.object({
  ready: z.boolean(),
  checks: z.object({ serving: z.boolean(), broker: z.boolean(), keys: z.boolean() }),
  reasons: z.array(z.string()),
});

const describeHealth: ApiDescription = {
  tag: "Health",
  open: true,
  schemas: [{ health, readiness, error }],
  operations: [
    get("getHealth", "/healthz", health),
    get("getReadiness", "/readyz", readiness, { answersWith: 503 }),
    get("getHealthAsBenchmarksDo", "/health", readiness, { answersWith: 503 }),
  ],
};

const describeReference: ApiDescription = {
  tag: "Reference",
  open: true,
  schemas: [],
  operations: [
    get("getOpenApi", "/openapi.json", z.looseObject({})),
    get("getDocs", "/docs", z.string(), { media: "text/html" }),
  ],
};

/** A section of the document: operations of an API, with its endpoints and the shape of its errors. */
export type Section = ApiDescription & Pick<Api, "prefix" | "endpoints" | "faults">;

/** The sections of the document, the most used first. */
export const sections: readonly Section[] = [
  ...apis.flatMap(({ descriptions, ...api }) => descriptions.map((each) => ({ ...api, ...each }))),
  ...[describeHealth, describeReference].map((each) => ({ ...each, prefix: "" as const, endpoints: [] })),
];

/** All schemas of the document by name. Bodies are read with the same schemas. */
export const publicSchemas: Readonly<Record<string, z.ZodType>> = Object.fromEntries(
  sections
    .flatMap(({ schemas }) => schemas.flatMap(Object.entries<z.ZodType>))
    .map(([name, schema]) => [name.charAt(0).toUpperCase() + name.slice(1), schema]),
);

export const schemaNames = new Map(Object.entries(publicSchemas).map(([name, schema]) => [schema, name]));
