import type { z } from "zod";
import type { Api } from "../apis/api.ts";
import { apis } from "../apis/apis.ts";
import type { ApiDescription } from "../apis/description.ts";
import { describeHealth, describeReference } from "./describe-site.ts";

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
