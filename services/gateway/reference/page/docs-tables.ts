import { errorAnchor } from "./docs-endpoint.ts";
import { markup, nothing, prose, type Markup } from "./docs-markup.ts";
import { grouped } from "./docs-type.ts";
import type { OpenApiDocument } from "../openapi-document.ts";

/** Renders the table of all errors. */
export function errorsTable({ "x-trunkline-errors": errors }: OpenApiDocument): Markup {
  const named = new Set<string>();
  const rows = errors.map(({ status, type, code, meaning, retried, retry_after_seconds: wait }) => {
    const anchor = errorAnchor(status, code);
    const id = named.has(anchor) ? nothing : markup` id="${anchor}"`;
    named.add(anchor);
    return markup`<tr${id}><td>${status}</td><td><code>${code ?? "null"}</code><br><small>${type}</small></td><td>${prose(meaning)}</td><td>${retried ? "yes" : "no"}${wait === undefined ? nothing : markup`<br><small>after ${wait} s</small>`}</td></tr>`;
  });
  return markup`<table class="errors"><thead><tr><th>Status</th><th>Code and type</th><th>When</th><th>Retried</th></tr></thead><tbody>${rows}</tbody></table>`;
}

export function headersTable({ components }: OpenApiDocument): Markup {
  const rows = Object.entries(components.headers).map(
    ([name, { description, example }]) =>
      markup`<tr><td><code>${name}</code></td><td>${prose(description)}</td><td><code>${example}</code></td></tr>`,
  );
  return markup`<table class="headers"><thead><tr><th>Header of an answer</th><th>What it says</th><th>Such as</th></tr></thead><tbody>${rows}</tbody></table>`;
}

export function requestHeadersTable({ components }: OpenApiDocument): Markup {
  const rows = Object.values(components.parameters).map(
    ({ name, description }) => markup`<tr><td><code>${name}</code></td><td>${prose(description)}</td></tr>`,
  );
  return markup`<table class="headers"><thead><tr><th>Header of a request</th><th>What it says</th></tr></thead><tbody><tr><td><code>authorization</code></td><td><code>Bearer</code> and the key. Everything under <code>/v1</code> needs it.</td></tr>${rows}</tbody></table>`;
}

export function limitsTable({ "x-trunkline-limits": limits }: OpenApiDocument): Markup {
  const rows = limits.map(
    ({ name, value, unit, meaning }) =>
      markup`<tr><td><code>${name}</code></td><td>${grouped(value)} ${unit}</td><td>${prose(meaning)}</td></tr>`,
  );
  return markup`<table class="limits"><thead><tr><th>Limit</th><th>At most</th><th>Of what</th></tr></thead><tbody>${rows}</tbody></table>`;
}
