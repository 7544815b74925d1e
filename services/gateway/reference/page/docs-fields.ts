import { fieldsOf } from "../describe-fields.ts";
import { markup, nothing, prose, type Markup } from "./docs-markup.ts";
import { typeOf, type Side } from "./docs-type.ts";
import type { Schema } from "../openapi-document.ts";

interface Row {
  readonly path: string;
  readonly schemas: Schema[];
  readonly required: boolean;
}

/** Renders the fields of a schema as a table. Nested fields have their full paths. */
export function fieldsTable(schema: Schema, side: Side): Markup {
  const rows = rowsOf(schema);
  if (rows.length === 0) return markup`<p>${typeOf(schema, side)}</p>`;
  return markup`<table class="fields"><thead><tr><th>Field</th><th>Type</th><th>What it is</th></tr></thead><tbody>${rows.map((each) => row(each, side))}</tbody></table>${refusedFields(schema)}`;
}

/** Returns one row for each path. Fields of several kinds of value that share a path are merged. */
function rowsOf(schema: Schema): Row[] {
  const rows = new Map<string, Row>();
  for (const { path, schema: field, required } of fieldsOf(schema)) {
    const known = rows.get(path);
    if (known === undefined) rows.set(path, { path, schemas: [field], required });
    else known.schemas.push(field);
  }
  return [...rows.values()];
}

function row({ path, schemas, required }: Row, side: Side): Markup {
  const [first = {}] = schemas;
  return markup`<tr><td><code>${breakable(path)}</code>${mark(required, side)}</td><td>${typeOf({ anyOf: schemas }, side)}</td><td>${prose(first.description ?? "")}</td></tr>`;
}

/** Marks the exceptions only: required fields of a request, and fields that an answer may lack. */
function mark(required: boolean, side: Side): Markup {
  if (side === "sent") return required ? markup` <em>required</em>` : nothing;
  return required ? nothing : markup` <em class="quiet">sometimes</em>`;
}

/** Allows a line break after each dot of a path. */
function breakable(path: string): Markup[] {
  return path.split(".").map((part, place) => (place === 0 ? markup`${part}` : markup`.<wbr>${part}`));
}

function refusedFields(schema: Schema): Markup {
  const refused = schema["x-trunkline-refused"];
  if (typeof refused !== "object" || refused === null) return nothing;
  const fields = Object.entries(refused).map(([field, why]) => markup`<li><code>${field}</code> ${String(why)}.</li>`);
  return markup`<p>Refused, since nothing here can do what they ask for:</p><ul class="refused">${fields}</ul>`;
}
