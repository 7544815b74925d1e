import { z } from "zod";

export type Json = Record<string, unknown>;

/** Options of writing a JSON Schema: for a request or an answer, and whether it allows unknown fields. */
export interface Writing {
  readonly io: "input" | "output";
  readonly open: boolean;
}

/** For answers. Later versions may add fields, so the schema allows unknown fields. */
export const answered: Writing = { io: "output", open: true };
/** For requests in which an unknown field is an error. */
export const sentExactly: Writing = { io: "input", open: false };
/** For requests in which unknown fields are ignored. */
export const sentLeniently: Writing = { io: "input", open: true };

/** Returns the JSON Schema of a schema, with nested schemas inline. */
export function jsonSchema(schema: z.ZodType, writing: Writing): z.core.JSONSchema.BaseSchema {
  return withoutIdentity(z.toJSONSchema(schema, asWritten(writing)));
}

/** Returns the JSON Schemas by name. A named schema inside another becomes a `$ref`. */
export function namedSchemas(
  named: Readonly<Record<string, z.ZodType>>,
  writing: Writing,
): Record<string, z.core.JSONSchema.BaseSchema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { uri: refTo, ...asWritten(writing) });
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withoutIdentity(schema)]));
}

export function refTo(name: string): string {
  return `#/components/schemas/${name}`;
}

/**
 * Removes keywords that have another meaning in OpenAPI or add nothing. In TypeScript, `readOnly` is an array that
 * nobody changes; in OpenAPI, it is a field that may not be sent. Where a schema has a `format`, its `pattern` (such as
 * that of all valid dates) adds nothing.
 */
function asWritten({ io, open }: Writing) {
  return {
    io,
    override({ jsonSchema: written }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }): void {
      delete written.readOnly;
      if (written.format !== undefined) delete written.pattern;
      if (open && written.additionalProperties === false) delete written.additionalProperties;
    },
  };
}

function withoutIdentity(schema: z.core.JSONSchema.BaseSchema): z.core.JSONSchema.BaseSchema {
  const { $schema: _schema, $id: _id, ...rest } = schema;
  return rest;
}
