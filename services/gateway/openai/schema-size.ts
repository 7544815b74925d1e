import { Fault } from "#shared/fault/fault.ts";

/** How long one JSON schema of a request may be, as JSON: runtimes make a grammar of it, and patterns in it are run. */
export const schemaCharactersMax = 262_144;

export function insistOnSchemaSize(schema: object | undefined, param: string): void {
  if (schema === undefined || JSON.stringify(schema).length <= schemaCharactersMax) return;
  throw new Fault("string_too_long", {
    message: `'${param}' must have at most ${schemaCharactersMax} characters as JSON (schemaCharactersMax).`,
    param,
  });
}
