import { code } from "./docs-code.ts";
import { fieldsTable } from "./docs-fields.ts";
import { markup, nothing, prose, type Markup } from "./docs-markup.ts";
import { typeOf, type Side } from "./docs-type.ts";
import type { Medium, OpenApiDocument, Operation, Schema } from "../openapi-document.ts";

/** An operation with its method and path. */
export interface Endpoint {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

export function endpointsOf({ paths }: OpenApiDocument): Endpoint[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** Renders one endpoint: its request, its answer and its errors. */
export function endpointSection(endpoint: Endpoint, document: OpenApiDocument, baseUrl: string): Markup {
  const { method, path, operation } = endpoint;
  return markup`<section class="endpoint"><h3 id="${operation.operationId}">${operation.summary}</h3>
<p class="route"><b class="${method.toLowerCase()}">${method}</b> <code>${path}</code>${operation.security === undefined ? nothing : markup` <em class="quiet">no key needed</em>`}</p>
<p>${prose(operation.description)}</p>${pathFields(operation)}${request(operation, document, baseUrl)}${answers(operation, document)}${refusals(operation)}</section>`;
}

function pathFields({ parameters }: Operation): Markup {
  const inPath = parameters.flatMap((each) => ("in" in each && each.in === "path" ? [each] : []));
  if (inPath.length === 0) return nothing;
  return markup`<dl>${inPath.map(({ name, description }) => markup`<dt><code>{${name}}</code></dt><dd>${prose(description)}</dd>`)}</dl>`;
}

function request({ requestBody }: Operation, document: OpenApiDocument, baseUrl: string): Markup {
  const medium = requestBody?.content["application/json"];
  if (medium === undefined) return nothing;
  const examples = Object.values(medium.examples ?? {}).map(
    ({ summary, value }, place) =>
      markup`<details${place === 0 ? markup` open` : nothing}><summary>${summary}</summary>${code(JSON.stringify(value, undefined, 2), { baseUrl, label: "JSON" })}</details>`,
  );
  return markup`${titled("Request", medium.schema)}${table(medium.schema, document, "sent")}<div class="examples">${examples}</div>`;
}

function answers({ responses }: Operation, document: OpenApiDocument): Markup {
  const media = Object.entries(responses["200"]?.content ?? {});
  return markup`${media.map(([type, medium]) => answer(type, medium, document))}`;
}

function answer(type: string, { schema }: Medium, document: OpenApiDocument): Markup {
  if (type !== "text/event-stream") {
    return markup`${titled("Answer", schema)}${schema.$ref === undefined ? markup`<p><code>${type}</code></p>` : table(schema, document, "answered")}`;
  }
  const [chunk = {}] = schema.anyOf ?? [];
  return markup`${titled("One event of a stream", chunk)}<p>The data of each event; <a href="#streams">how streams run</a>.</p>${table(chunk, document, "answered")}`;
}

function titled(title: string, schema: Schema): Markup {
  const name = nameOf(schema);
  return name === undefined
    ? markup`<h4>${title}</h4>`
    : markup`<h4 id="${name}">${title} <span class="quiet">${name}</span></h4>`;
}

function table(schema: Schema, document: OpenApiDocument, side: Side): Markup {
  const named = document.components.schemas[nameOf(schema) ?? ""];
  return named === undefined ? markup`<p>${typeOf(schema, side)}</p>` : fieldsTable(named, side);
}

/** Returns the name of the schema that a `$ref` points to. */
export function nameOf({ $ref }: Schema): string | undefined {
  return $ref?.slice($ref.lastIndexOf("/") + 1);
}

function refusals({ responses }: Operation): Markup {
  const told = Object.entries(responses).flatMap(([status, { "x-trunkline-codes": codes }]) =>
    codes === undefined ? [] : [markup`<dt>${status}</dt><dd>${codes.map((each) => codeLink(status, each))}</dd>`],
  );
  return markup`<details><summary>Errors</summary><dl class="codes">${told}</dl></details>`;
}

function codeLink(status: string, told: string | null): Markup {
  return markup`<a href="#${errorAnchor(Number(status), told)}"><code>${told ?? "null"}</code></a> `;
}

export function errorAnchor(status: number, told: string | null): string {
  return `error-${status}-${told ?? "null"}`;
}
