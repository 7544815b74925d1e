import type { z } from "zod";

type Schema = z.core.JSONSchema.BaseSchema;

/** A field of a schema and its path. The fields of a list's items have the path of the list. */
export interface Field {
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

/** Adds a description to each field that has none of its own. */
export function describeFields(schema: Schema, sentences: Readonly<Record<string, string>>): void {
  for (const field of fieldsOf(schema)) {
    const sentence = sentences[field.path];
    if (sentence !== undefined) field.schema.description ??= sentence;
  }
}
