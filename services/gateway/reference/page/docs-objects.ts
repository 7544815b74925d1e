import { nameOf, type Endpoint } from "./docs-endpoint.ts";
import { fieldsTable } from "./docs-fields.ts";
import { markup, type Markup } from "./docs-markup.ts";
import type { Medium, OpenApiDocument, Schema } from "../openapi-document.ts";

type Media = Readonly<Record<string, Medium>>;

/** Renders the schemas that no endpoint section shows. */
export function objectsSection(document: OpenApiDocument, endpoints: readonly Endpoint[]): Markup {
  const { schemas } = document.components;
  const asked = endpoints.flatMap(({ operation }) => namesIn(operation.requestBody?.content ?? {}));
  const answered = endpoints.flatMap(({ operation }) => namesIn(operation.responses["200"]?.content ?? {}));
  const withEndpoints = new Set([...asked, ...answered]);
  const sent = reachedFrom(asked, schemas);
  const rest = Object.entries(schemas).filter(([name]) => !withEndpoints.has(name));
  return markup`<section><h2 id="objects">Objects</h2>${rest.map(
    ([name, schema]) =>
      markup`<section><h3 id="${name}">${name}</h3>${textsOf(schema)}${fieldsTable(schema, sent.has(name) ? "sent" : "answered")}</section>`,
  )}</section>`;
}

/** Lists the strings that are allowed in place of an object. */
function textsOf({ anyOf = [] }: Schema): Markup {
  const texts = anyOf.flatMap((kind) => (kind.type === "string" ? (kind.enum ?? []) : []));
  if (texts.length === 0) return markup``;
  return markup`<p>One of ${texts.map((text) => markup`<code>${JSON.stringify(text)}</code> `)}, or an object:</p>`;
}

/**
 * Returns the names of the schemas that an endpoint's section shows. Of an event that may also be an error, it is the
 * first one.
 */
function namesIn(media: Media): string[] {
  const schemas = Object.values(media).map(({ schema }): Schema => schema.anyOf?.[0] ?? schema);
  return schemas.flatMap((schema) => nameOf(schema) ?? []);
}

/** Returns the named schemas and all schemas that they refer to. */
function reachedFrom(names: readonly string[], schemas: Readonly<Record<string, Schema>>): ReadonlySet<string> {
  const reached = new Set(names);
  for (const name of reached) {
    const references = JSON.stringify(schemas[name] ?? {}).matchAll(/"\$ref":"[^"]*\/([^"/]+)"/g);
    for (const [, referred = ""] of references) reached.add(referred);
  }
  return reached;
}
