import type { z } from "zod";
import { apis } from "../apis/apis.ts";
import type { ApiDescription } from "../apis/description.ts";
import { describeHealth, describeReference } from "./describe-site.ts";

/** The sections of the document, the most used first. */
export const publicApis: readonly ApiDescription[] = [
  ...apis.flatMap(({ descriptions }) => descriptions),
  describeHealth,
  describeReference,
];

/** All schemas of the document by name. Bodies are read with the same schemas. */
export const publicSchemas: Readonly<Record<string, z.ZodType>> = Object.fromEntries(
  publicApis
    .flatMap(({ schemas }) => schemas.flatMap(Object.entries<z.ZodType>))
    .map(([name, schema]) => [name.charAt(0).toUpperCase() + name.slice(1), schema]),
);

export const schemaNames = new Map(Object.entries(publicSchemas).map(([name, schema]) => [schema, name]));
