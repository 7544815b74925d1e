import { code } from "./docs-code.ts";
import { markup, type Markup } from "./docs-markup.ts";
import { errorsTable, headersTable, limitsTable, requestHeadersTable } from "./docs-tables.ts";
import type { OpenApiDocument } from "../openapi-document.ts";

/** Renders the sections that apply to all endpoints. */
export function commonSections(document: OpenApiDocument, baseUrl: string): Markup {
  return markup`${streams(baseUrl)}${errors(document, baseUrl)}${headers(document)}${limits(document)}`;
}

const stream = `: queued at 2

data: {"id":"chatcmpl-8sLq","choices":[{"index":0,"delta":{"content":"Sun"}, … }], … }

data: {"id":"chatcmpl-8sLq","choices":[{"index":0,"delta":{"content":"light"}, … }], … }

data: [DONE]`;

function streams(baseUrl: string): Markup {
  return markup`<section><h2 id="streams">Streams</h2>
<p>A stream is a sequence of server-sent events. The data of each is one JSON object, and after the last of them comes <code>[DONE]</code>, which is none. The events of a response have names instead, and the last is <code>response.completed</code> or <code>response.incomplete</code>.</p>
${code(stream, { baseUrl, label: "text/event-stream" })}
<ul><li><code>[DONE]</code>, or the last event of a response, is sent after success and only then. A stream that ends without it broke off.</li>
<li>What fails after the first event is told as an event of the form of every <a href="#errors">error</a>; nothing follows it.</li>
<li>The status is true: it is held back until the first piece of the answer, or for the first seconds of a wait.</li>
<li>Lines that begin with a colon are comments. They keep the connection alive, and say what is waited for. Clients leave them out.</li>
<li>Closing the connection stops the model.</li></ul></section>`;
}

const error = `{
  "error": {
    "message": "The model 'llama9' does not exist or this key may not use it.",
    "type": "invalid_request_error",
    "param": "model",
    "code": "model_not_found"
  }
}`;

function errors(document: OpenApiDocument, baseUrl: string): Markup {
  return markup`<section><h2 id="errors">Errors</h2>
<p>Every error has the form of OpenAI’s, with four keys always. Branch on the status and the <code>code</code>; show people the <code>message</code>, which says what to do.</p>
${code(error, { baseUrl, label: "404 Not Found" })}
<p>A request with several faults is told the first of them, always in this order: the way it is sent, the URL and method, the key, the size, the JSON, the fields, the model, what the model can do, the limits of the key, and then what becomes of it.</p>
<h3 id="retries">What is retried</h3>
<p>Official clients send a request again by themselves, twice unless told otherwise, after the statuses 408, 409, 429 and all from 500 on, and when the connection breaks before the answer. They wait as long as <code>retry-after</code> says. <code>x-should-retry: false</code> stops them where the same would only happen again. Nothing is retried once a stream has begun.</p>
<h3 id="codes">All of them</h3>${errorsTable(document)}</section>`;
}

function headers(document: OpenApiDocument): Markup {
  return markup`<section><h2 id="headers">Headers</h2>${requestHeadersTable(document)}${headersTable(document)}</section>`;
}

function limits(document: OpenApiDocument): Markup {
  return markup`<section><h2 id="limits">Limits</h2>
<p>Whoever hits one is told its name. A model’s own limit is its <code>context_window</code>. What a key may use is told in the headers <code>x-ratelimit-…</code>.</p>${limitsTable(document)}</section>`;
}
