import { z } from "zod";

export type Json = Record<string, unknown>;

/** How a schema is written down: for what is sent or what is answered, and whether fields may stand in it that it lacks. */
export interface Writing {
  readonly io: "input" | "output";
  readonly open: boolean;
}

/** Answers may get further fields one day, so clients are not told that there are none. */
export const answered: Writing = { io: "output", open: true };
/** A request in which a field that is not known is a mistake. */
export const sentExactly: Writing = { io: "input", open: false };
/** A request in which a field that is not known is ignored. */
export const sentLeniently: Writing = { io: "input", open: true };

/** A schema with all that it is made of. */
export function jsonSchema(schema: z.ZodType, writing: Writing): z.core.JSONSchema.BaseSchema {
  return withoutIdentity(z.toJSONSchema(schema, asWritten(writing)));
}

/** Schemas by the names that documents have for them; where one stands in another, it is referred to. */
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
 * What the schemas say in TypeScript's sense, in OpenAPI's: `readOnly` is no array that nobody changes, but a field that
 * may not be sent. And the pattern of every day that there is says no more than its format.
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
