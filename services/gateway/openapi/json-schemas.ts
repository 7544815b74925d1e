import { z } from "zod";

export type Json = Record<string, unknown>;
export type Schema = z.core.JSONSchema.BaseSchema;

/** Options of writing a JSON Schema: for a request or an answer, and whether it allows unknown fields. */
interface Writing {
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
export function jsonSchema(schema: z.ZodType, writing: Writing): Schema {
  return withoutIdentity(z.toJSONSchema(schema, asWritten(writing)));
}

/** Returns the JSON Schemas by name. A named schema inside another becomes a `$ref`. */
export function namedSchemas(named: Readonly<Record<string, z.ZodType>>, writing: Writing): Record<string, Schema> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { uri: refTo, ...asWritten(writing) });
  return Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, withoutIdentity(schema)]));
}

/** Returns the parameters of a path or a query, one for each field of a schema. */
export function parametersIn(location: "path" | "query", schema: z.ZodType, writing: Writing): Json[] {
  const { properties = {}, required = [] } = jsonSchema(schema, writing);
  return Object.entries(properties).map(([name, field]) => {
    const { description, ...shape }: Schema = Object(field);
    return { name, in: location, required: location === "path" || required.includes(name), description, schema: shape };
  });
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
    // A file of a form is an instance of a class, which says by `meta` how it is written.
    unrepresentable: "any" as const,
    override({ jsonSchema: written }: { readonly jsonSchema: Schema }): void {
      delete written.readOnly;
      if (written.format !== undefined) delete written.pattern;
      if (open && io === "output" && written.additionalProperties === false) delete written.additionalProperties;
    },
  };
}

function withoutIdentity(schema: Schema): Schema {
  const { $schema: _schema, $id: _id, ...rest } = schema;
  return rest;
}

/** A field of a schema. The path of a field in a list's items has no step for the list. */
interface SchemaField {
  readonly name: string;
  readonly path: string;
  readonly schema: Schema;
}

/** Yields all fields of a schema at every depth, except in schemas behind a `$ref`. */
export function* fieldsOf(schema: Schema, above = ""): Generator<SchemaField> {
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    if (typeof each === "boolean") continue;
    const path = above === "" ? name : `${above}.${name}`;
    yield { name, path, schema: each };
    yield* fieldsOf(each, path);
  }
  for (const kind of [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])]) yield* fieldsOf(kind, above);
  const { items } = schema;
  if (typeof items === "object" && !Array.isArray(items)) yield* fieldsOf(items, above);
}
