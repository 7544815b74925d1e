import type { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { readShape } from "../intake/read-shape.ts";

const nameCharactersMax = 100;

/**
 * Reads a part of a management request. An unknown field is an error here, and not ignored as in a chat request: a
 * mistyped field would leave half of the change undone.
 */
export function readStrictly<Schema extends z.ZodType>(schema: Schema, given: unknown): z.output<Schema> {
  const { value, ignored } = readShape(schema, { ...Object(given) });
  const [unknown] = ignored;
  if (unknown === undefined) return value;
  const param = unknown.slice(0, nameCharactersMax);
  throw new Fault("unsupported_parameter", { message: `Unknown parameter: '${param}'.`, param });
}
