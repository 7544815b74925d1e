import { createHash } from "node:crypto";
import { endpointsOf, endpointSection, type Endpoint } from "./docs-endpoint.ts";
import { Markup, markup, prose } from "./docs-markup.ts";
import { objectsSection } from "./docs-objects.ts";
import { docsScript } from "./docs-script.ts";
import { commonSections } from "./docs-sections.ts";
import { startSection } from "./docs-start.ts";
import { docsStyle } from "./docs-style.ts";
import type { OpenApiDocument } from "../openapi-document.ts";

/** The Content-Security-Policy of the page: only its own style and script are allowed. */
export const docsPolicy = [
  "default-src 'none'",
  `style-src '${hashOf(docsStyle)}'`,
  `script-src '${hashOf(docsScript)}'`,
  "img-src data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

/** Renders the document as one HTML page without external resources. */
export function docsPage(document: OpenApiDocument, baseUrl: string): string {
  const { title, description } = document.info;
  const endpoints = endpointsOf(document);
  const page = markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} API</title>
<link rel="icon" href="data:,">
<style>${new Markup(docsStyle)}</style>
</head>
<body>
<nav aria-label="Contents"><details open><summary>${title}</summary>${contents(endpoints)}</details></nav>
<main>
<header><h1>${title} API</h1><p class="lead">${prose(description)}</p><p><a href="openapi.json">openapi.json</a> is the same for programs.</p></header>
${startSection(baseUrl)}
<section><h2 id="endpoints">Endpoints</h2>${endpoints.map((each) => endpointSection(each, document, baseUrl))}</section>
${objectsSection(document, endpoints)}
${commonSections(document, baseUrl)}
</main>
<script>${new Markup(docsScript)}</script>
</body>
</html>
`;
  return page.text;
}

function contents(endpoints: readonly Endpoint[]): Markup {
  const listed = endpoints.map(
    ({ method, path, operation }) =>
      markup`<li><a href="#${operation.operationId}"><b class="${method.toLowerCase()}">${method}</b> ${path}</a></li>`,
  );
  return markup`<ul><li><a href="#start">Start</a></li><li><a href="#endpoints">Endpoints</a><ul>${listed}</ul></li>
<li><a href="#objects">Objects</a></li><li><a href="#streams">Streams</a></li>
<li><a href="#errors">Errors</a><ul><li><a href="#retries">What is retried</a></li><li><a href="#codes">All of them</a></li></ul></li>
<li><a href="#headers">Headers</a></li><li><a href="#limits">Limits</a></li></ul>`;
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
