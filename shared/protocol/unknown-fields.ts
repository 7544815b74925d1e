type Path = readonly (string | number)[];

/**
 * Returns the paths of the fields that a schema does not know: those of the parsed value that the schema's output
 * lacks. The schema must leave out unknown fields, as `z.object` does, and must not rename known ones.
 */
export function unknownFields(value: unknown, output: unknown, path: Path = []): Path[] {
  // A value without a schema of its own, such as a JSON schema, is passed on as it is.
  if (value === output || typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) {
    return value.flatMap((item, place) => unknownFields(item, Reflect.get(Object(output), place), [...path, place]));
  }
  const known = Object(output) as Readonly<Record<string, unknown>>;
  return Object.entries(value).flatMap(([field, inner]) =>
    Object.hasOwn(known, field) ? unknownFields(inner, known[field], [...path, field]) : [[...path, field]],
  );
}
