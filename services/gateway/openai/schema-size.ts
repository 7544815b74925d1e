import { Fault } from "#shared/fault/fault.ts";

/** Maximum length of one JSON schema of a request, as JSON. Runtimes compile it to a grammar and run its patterns. */
export const schemaCharactersMax = 262_144;

export function insistOnSchemaSize(schema: object | undefined, param: string): void {
  if (schema === undefined || JSON.stringify(schema).length <= schemaCharactersMax) return;
  throw new Fault("string_too_long", {
    message: `'${param}' must have at most ${schemaCharactersMax} characters as JSON (schemaCharactersMax).`,
    param,
  });
}
