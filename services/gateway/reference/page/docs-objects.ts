import { nameOf, type Endpoint } from "./docs-endpoint.ts";
import { fieldsTable } from "./docs-fields.ts";
import { markup, type Markup } from "./docs-markup.ts";
import type { Medium, OpenApiDocument, Schema } from "../openapi-document.ts";

type Media = Readonly<Record<string, Medium>>;

/** What requests and answers are made of, but for those that stand with their endpoints. */
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

/** Where a text may stand in place of an object: which ones. */
function textsOf({ anyOf = [] }: Schema): Markup {
  const texts = anyOf.flatMap((kind) => (kind.type === "string" ? (kind.enum ?? []) : []));
  if (texts.length === 0) return markup``;
  return markup`<p>One of ${texts.map((text) => markup`<code>${JSON.stringify(text)}</code> `)}, or an object:</p>`;
}

/** The schemas that stand with an endpoint: its own, and of an event that may be an error the other one. */
function namesIn(media: Media): string[] {
  const schemas = Object.values(media).map(({ schema }): Schema => schema.anyOf?.[0] ?? schema);
  return schemas.flatMap((schema) => nameOf(schema) ?? []);
}

/** These schemas and all that they refer to. */
function reachedFrom(names: readonly string[], schemas: Readonly<Record<string, Schema>>): ReadonlySet<string> {
  const reached = new Set(names);
  for (const name of reached) {
    const references = JSON.stringify(schemas[name] ?? {}).matchAll(/"\$ref":"[^"]*\/([^"/]+)"/g);
    for (const [, referred = ""] of references) reached.add(referred);
  }
  return reached;
}
