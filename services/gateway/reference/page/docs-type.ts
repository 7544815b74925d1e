import { markup, nothing, type Markup } from "./docs-markup.ts";
import type { Schema } from "../openapi-document.ts";

/**
 * The side of a schema: request or answer. A request shows the bounds of each field, but not that null counts as
 * missing. An answer shows where null may occur, but no bounds.
 */
export type Side = "sent" | "answered";

const noBound = Number.MAX_SAFE_INTEGER;

/** Renders the type of a schema in a few words. */
export function typeOf(schema: Schema, side: Side): Markup {
  const kinds = kindsOf(schema).filter(({ type }) => side === "answered" || type !== "null");
  const said = new Map(kinds.map((each) => kindOf(each, side)).map((each) => [each.text, each]));
  return markup`${[...said.values()].map((each, place) => (place === 0 ? each : markup` or ${each}`))}`;
}

/** Returns the kinds of value that a schema allows, each as a schema of its own. */
function kindsOf(schema: Schema): Schema[] {
  const options = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])];
  if (options.length > 0) return options.flatMap(kindsOf);
  if (Array.isArray(schema.type)) return schema.type.map((type): Schema => ({ ...schema, type }));
  return [schema];
}

function kindOf(schema: Schema, side: Side): Markup {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1);
    return markup`<a href="#${name}">${name}</a>`;
  }
  if (schema.const !== undefined) return markup`<code>${JSON.stringify(schema.const)}</code>`;
  if (schema.enum !== undefined) return oneOf(schema.enum);
  switch (schema.type) {
    case "array":
      return listOf(schema, side);
    case "object":
      return mapOf(schema, side);
    default:
      return markup`${schema.type ?? "anything"}${side === "sent" ? bounds(schema) : nothing}`;
  }
}

function oneOf(values: readonly unknown[]): Markup {
  const last = values.length - 1;
  const parts = values.map((value, place) => {
    const before = place === 0 ? "" : place === last ? " or " : ", ";
    return markup`${before}<code>${JSON.stringify(value)}</code>`;
  });
  return markup`${parts}`;
}

function listOf(schema: Schema, side: Side): Markup {
  const { items, minItems, maxItems } = schema;
  const of = items === undefined || typeof items === "boolean" || Array.isArray(items) ? nothing : typeOf(items, side);
  return markup`list of ${of}${side === "sent" ? range(minItems, maxItems, "") : nothing}`;
}

function mapOf({ additionalProperties: values }: Schema, side: Side): Markup {
  if (typeof values !== "object" || values.type === undefined) return markup`object`;
  return markup`object of ${typeOf(values, side)}`;
}

function bounds(schema: Schema): Markup {
  if (schema.type === "string") return range(schema.minLength, schema.maxLength, " characters");
  return range(schema.minimum, schema.maximum, "");
}

function range(min: number | undefined, max: number | undefined, unit: string): Markup {
  const least = min === undefined || min <= -noBound ? undefined : grouped(min);
  const most = max === undefined || max >= noBound ? undefined : grouped(max);
  if (most === undefined) return least === undefined || unit !== "" ? nothing : small(`${least} or more`);
  return small(least === undefined ? `up to ${most}${unit}` : `${least} to ${most}${unit}`);
}

function small(text: string): Markup {
  return markup` <small>${text}</small>`;
}

export function grouped(value: number): string {
  return value.toLocaleString("en-US").replace("-", "−");
}
