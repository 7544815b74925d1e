import { speechCharactersMax } from "../apis/media/media-request.ts";
import { formFieldBytesMax, formPartsMax } from "../http/read-form.ts";
import { modelIdCharactersMax } from "#shared/protocol/model.ts";
import { readOwnFile } from "#shared/process/own-files.ts";
import { stopsMax, toolsMax, completionsMax, embedDimensionsMax, embedInputsMax } from "#shared/protocol/job-bodies.ts";
import { limits } from "#shared/protocol/limits.ts";
import { clientBacklogBytesMax } from "../jobs/write-answer.ts";
import type { BodyLimit } from "../http/answer-faults.ts";
import { clientRequestCharactersMax } from "../http/request-state.ts";
import { headerLinesMax, headersBytesMax, urlBytesMax } from "../http/guard-edge.ts";
import { messagesMax } from "../chats/read-chat.ts";
import { responseCharactersMax } from "../apis/responses/response-output.ts";
import { outerToolNameCharactersMax } from "../chats/request-tools.ts";
import { metadataPairsMax } from "../apis/responses/response-schema.ts";
import { repeatedCharactersMax } from "../apis/responses/response-tools.ts";
import { storedResponsesMax } from "#shared/records/stored-responses.ts";
import { storedResponseBytesMax, storedTurnsBytesMax } from "../apis/responses/kept-responses.ts";
import { itemsPageMax } from "../apis/responses/stored-endpoints.ts";
import { storedTurnsMax } from "../apis/responses/stored-turns.ts";
import { modelsPageMax } from "../apis/models/list-models.ts";
import { describeOperation } from "./describe-operation.ts";
import { fieldsOf, namedSchemas, type Schema, sentLeniently } from "./json-schemas.ts";
import { publicSchemas, schemaNames, sections } from "./public-apis.ts";
import { faultDescriptions } from "./public-faults.ts";
import { answerHeaders, requestHeaders } from "./public-headers.ts";
import { wordsFor, wordsOf } from "./words.ts";

/** Markdown: the start of a request, and the rules that all endpoints share. */
const introduction = readOwnFile(new URL("./introduction.md", import.meta.url)).toString();

/** Returns the OpenAPI 3.1 document of the public API, generated from the schemas that also validate its requests. */
export function publicDocument(bodyLimit: BodyLimit) {
  return {
    openapi: "3.1.0",
    info: { title: "Trunkline", version: "1", description: introduction },
    servers: [{ url: "/", description: "The gateway that this document is from." }],
    security: [{ apiKey: [] }, { headerKey: [] }],
    tags: sections.map(({ tag: name }) => ({ name, description: wordsFor("Sections", name).meaning })),
    paths: pathsOf(),
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "An API key of this service: trunkline_…" },
        headerKey: {
          type: "apiKey",
          in: "header",
          name: "x-api-key",
          description: "The same key. `api-key` is read too.",
        },
      },
      parameters: requestHeaders,
      headers: answerHeaders,
      schemas: describedSchemas(),
    },
    "x-trunkline-errors": faultDescriptions(),
    "x-trunkline-limits": publicLimits(bodyLimit),
  };
}

export type OpenApiDocument = ReturnType<typeof publicDocument>;

function pathsOf() {
  const paths: Record<string, Record<string, ReturnType<typeof describeOperation>["description"]>> = {};
  for (const { path, method, description } of sections.flatMap((section) =>
    section.operations.map((operation) => describeOperation(operation, section)),
  ))
    (paths[path] ??= {})[method] = description;
  return paths;
}

/** Returns all schemas with the descriptions of their fields, and the fields that are refused beside the accepted ones. */
function describedSchemas(): Record<string, Schema> {
  const schemas = namedSchemas(publicSchemas, sentLeniently);
  const meanings = new Map(wordsOf("Fields").map(({ name, meaning }) => [name, meaning]));
  for (const [root, each] of Object.entries(schemas)) {
    for (const { name, path, schema } of fieldsOf(each)) {
      const meaning = meanings.get(`${root}.${path}`) ?? meanings.get(name);
      if (meaning !== undefined) schema.description ??= meaning;
    }
  }
  for (const { body, refuses = {} } of sections.flatMap(({ operations }) => operations)) {
    const refused = Object.fromEntries(Object.entries(refuses).map(([field, { why }]) => [field, why]));
    const name = body && schemaNames.get(body);
    if (name && Object.keys(refused).length > 0) schemas[name] = { ...schemas[name], "x-trunkline-refused": refused };
  }
  return schemas;
}

/** Returns the limits that clients may reach, by the names that error messages use. */
function publicLimits({ bodyBytesMax, bodyLimitName }: BodyLimit) {
  const { wholeAnswerCharactersMax, embeddingsCharactersMax } = limits;
  const values: Readonly<Record<string, number>>[] = [
    { bodyBytesMax },
    { headersBytesMax, headerLinesMax, urlBytesMax, clientRequestCharactersMax, modelIdCharactersMax, messagesMax },
    { metadataPairsMax, repeatedCharactersMax, responseCharactersMax, storedResponseBytesMax, storedTurnsMax },
    { storedTurnsBytesMax, storedResponsesMax, itemsPageMax, modelsPageMax, toolsMax, outerToolNameCharactersMax },
    { stopsMax, completionsMax, embedInputsMax, formPartsMax, formFieldBytesMax, speechCharactersMax },
    { embedDimensionsMax, wholeAnswerCharactersMax, embeddingsCharactersMax, clientBacklogBytesMax },
  ];
  return values.flatMap(Object.entries<number>).map(([name, value]) => {
    const { example: unit, meaning } = wordsFor("Limits", name);
    return { name: name === "bodyBytesMax" ? bodyLimitName : name, value, unit, meaning };
  });
}
