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
    override({ jsonSchema: written }: { readonly jsonSchema: Schema }): void {
      delete written.readOnly;
      if (written.format !== undefined) delete written.pattern;
      if (open && written.additionalProperties === false) delete written.additionalProperties;
    },
  };
}

function withoutIdentity(schema: Schema): Schema {
  const { $schema: _schema, $id: _id, ...rest } = schema;
  return rest;
}

/** A field of a schema and its path. The fields of a list's items have the path of the list. */
interface Field {
  readonly path: string;
  readonly schema: Schema;
  readonly required: boolean;
}

/**
 * Yields all fields of a schema at every depth, except in schemas behind a `$ref`. Where a schema allows several kinds
 * of object, a field is required only if all of them require it.
 */
export function* fieldsOf(schema: Schema, above = "", required = schema.required ?? []): Generator<Field> {
  for (const [name, each] of Object.entries(schema.properties ?? {})) {
    if (typeof each === "boolean") continue;
    const path = above === "" ? name : `${above}.${name}`;
    yield { path, schema: each, required: required.includes(name) };
    yield* fieldsOf(each, path);
  }
  const kinds = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  const demands = kinds.flatMap((each) => (each.properties === undefined ? [] : [new Set(each.required)]));
  const demandedByAll = [...(demands[0] ?? [])].filter((name) => demands.every((each) => each.has(name)));
  for (const each of kinds) yield* fieldsOf(each, above, demandedByAll);
  for (const each of itemsOf(schema)) yield* fieldsOf(each, above);
}

function itemsOf({ items }: Schema): Schema[] {
  return items === undefined || typeof items === "boolean" || Array.isArray(items) ? [] : [items];
}

/** Adds a description to each field that has none of its own, by its name. */
export function describeFields(schema: Schema, meanings: Readonly<Record<string, string>>): void {
  for (const field of fieldsOf(schema)) {
    const meaning = meanings[field.path.slice(field.path.lastIndexOf(".") + 1)];
    if (meaning !== undefined) field.schema.description ??= meaning;
  }
}
