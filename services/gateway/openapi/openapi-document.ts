import type { z } from "zod";
import type { Json } from "./json-schemas.ts";
import type { PublicLimit } from "./public-document.ts";
import type { ToldFault } from "./public-faults.ts";

export type Schema = z.core.JSONSchema.BaseSchema;

export interface Medium {
  readonly schema: Schema;
  readonly examples?: Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
}

export interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content: Readonly<Record<string, Medium>>;
  /** The error codes of this status, as in the table of errors. */
  readonly "x-trunkline-codes"?: readonly (string | null)[];
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "header";
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security?: readonly [];
  readonly parameters: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: { readonly required: true; readonly content: Readonly<Record<string, Medium>> };
  readonly responses: Readonly<Record<string, Response>>;
}

export interface Header {
  readonly description: string;
  readonly schema: Schema;
  readonly example: string | number;
}

/** The OpenAPI document of the public API: the part of OpenAPI 3.1 that it uses. */
export interface OpenApiDocument {
  readonly openapi: string;
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string; readonly description: string }[];
  readonly security: readonly Json[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly securitySchemes: Json;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly headers: Readonly<Record<string, Header>>;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
  readonly "x-trunkline-errors": readonly ToldFault[];
  readonly "x-trunkline-limits": readonly PublicLimit[];
}
