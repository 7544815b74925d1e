import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { BodyLimit } from "../intake/adopt-error.ts";
import { unsupportedChatFields, unsupportedResponseFields } from "../openai/unsupported-fields.ts";
import { answerHeaders } from "./answers/answer-headers.ts";
import { describeFields } from "./describe-fields.ts";
import { describeOperation } from "./describe-operation.ts";
import { fieldSentences, type Sentences } from "./field-sentences.ts";
import { namedSchemas, sentLeniently } from "./json-schemas.ts";
import type { Header, OpenApiDocument, Operation, Schema } from "./openapi-document.ts";
import { publicApi } from "./public-api.ts";
import { publicLimits } from "./public-limits.ts";
import { publicSchemas } from "./public-schemas.ts";
import { requestHeaders } from "./request-headers.ts";
import { toldFaults } from "./told-faults.ts";

/** Markdown: the start of a request, and the rules that all endpoints share. */
const introduction = readFileSync(join(import.meta.dirname, "introduction.md"), "utf8");

const tags = [
  { name: "Chat", description: "Conversations with a model." },
  { name: "Responses", description: "The same in items and events, as OpenAI has them now." },
  { name: "Completions", description: "Texts that a model continues." },
  { name: "Embeddings", description: "Vectors of texts." },
  { name: "Models", description: "What there is to ask." },
  { name: "Health", description: "For balancers, without a key." },
  { name: "Reference", description: "What this API says of itself, without a key." },
];

/** Returns the OpenAPI 3.1 document of the public API, generated from the schemas that also validate its requests. */
export function publicDocument(limit: BodyLimit): OpenApiDocument {
  return {
    openapi: "3.1.0",
    info: {
      title: "Trunkline",
      version: "1",
      description: introduction,
    },
    servers: [{ url: "/", description: "The gateway that this document is from." }],
    security: [{ apiKey: [] }],
    tags,
    paths: pathsOf(),
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "An API key of this service: trunkline_…" },
      },
      parameters: requestHeaders,
      headers: headersTold(),
      schemas: describedSchemas(),
    },
    "x-trunkline-errors": toldFaults(),
    "x-trunkline-limits": publicLimits(limit),
  };
}

function pathsOf(): Record<string, Record<string, Operation>> {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const [operationId, operation] of Object.entries(publicApi)) {
    const { path, method } = operation;
    paths[path] = { ...paths[path], [method.toLowerCase()]: describeOperation(operationId, operation) };
  }
  return paths;
}

function headersTold(): Record<string, Header> {
  return Object.fromEntries(
    Object.entries(answerHeaders).map(([name, { description, type, example }]) => [
      name,
      { description, schema: { type }, example },
    ]),
  );
}

const refusedFields = { ChatRequest: unsupportedChatFields, ResponseRequest: unsupportedResponseFields };

/**
 * Returns all schemas with the descriptions of their fields. Lists OpenAI's refused fields beside the accepted ones.
 */
function describedSchemas(): Record<string, Schema> {
  const schemas = namedSchemas(publicSchemas, sentLeniently);
  const sentences: Readonly<Record<string, Sentences | undefined>> = fieldSentences;
  for (const [name, schema] of Object.entries(schemas)) describeFields(schema, sentences[name] ?? {});
  for (const [name, unsupported] of Object.entries(refusedFields)) {
    const refused = Object.entries(unsupported).map(([field, { why }]) => [field, why]);
    schemas[name] = { ...schemas[name], "x-trunkline-refused": Object.fromEntries(refused) };
  }
  return schemas;
}
