import { speechCharactersMax } from "../apis/media/media-request.ts";
import { formFieldBytesMax, formPartsMax } from "../http/read-form.ts";
import { modelIdCharactersMax } from "#shared/protocol/model.ts";
import { readOwnFile } from "#shared/process/own-files.ts";
import { stopsMax, toolsMax, completionsMax, embedDimensionsMax, embedInputsMax } from "#shared/protocol/job-bodies.ts";
import { limits } from "#shared/protocol/limits.ts";
import { clientBacklogBytesMax } from "../jobs/write-answer.ts";
import type { BodyLimit } from "../http/answer-faults.ts";
import { clientRequestCharactersMax } from "../http/request-state.ts";
import { headerLinesMax, headersBytesMax, urlBytesMax } from "../http/framing-fault.ts";
import { messagesMax } from "../apis/chat/chat-request.ts";
import { responseCharactersMax } from "../apis/responses/response-output.ts";
import { outerToolNameCharactersMax } from "../chats/request-tools.ts";
import { metadataPairsMax, repeatedCharactersMax } from "../apis/responses/response-request.ts";
import { storedResponsesMax } from "#shared/records/stored-responses.ts";
import { storedResponseBytesMax, storedTurnsBytesMax } from "../apis/responses/kept-responses.ts";
import { itemsPageMax } from "../apis/responses/stored-endpoints.ts";
import { storedTurnsMax } from "../apis/responses/stored-turns.ts";
import { modelsPageMax } from "../apis/endpoints.ts";
import { describeOperation } from "./describe-operation.ts";
import { fieldsOf, namedSchemas, type Schema, sentLeniently } from "./json-schemas.ts";
import { nameOf, publicApis, publicSchemas } from "./public-apis.ts";
import { faultDescriptions } from "./public-faults.ts";
import { answerHeaders, requestHeaders } from "./public-headers.ts";
import { wordsOf } from "./words.ts";

/** Markdown: the start of a request, and the rules that all endpoints share. */
const introduction = readOwnFile(new URL("./introduction.md", import.meta.url)).toString();

/** Returns the OpenAPI 3.1 document of the public API, generated from the schemas that also validate its requests. */
export function publicDocument(bodyLimit: BodyLimit) {
  return {
    openapi: "3.1.0",
    info: { title: "Trunkline", version: "1", description: introduction },
    servers: [{ url: "/", description: "The gateway that this document is from." }],
    security: [{ apiKey: [] }, { headerKey: [] }],
    tags: publicApis.map(({ tag: name, description }) => ({ name, description })),
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
  const paths: Record<string, Record<string, ReturnType<typeof describeOperation>>> = {};
  for (const api of publicApis) {
    for (const operation of api.operations)
      (paths[operation.path] ??= {})[operation.method.toLowerCase()] = describeOperation(operation, api);
  }
  return paths;
}

/** Returns all schemas with the descriptions of their fields, and the fields that are refused beside the accepted ones. */
function describedSchemas(): Record<string, Schema> {
  const schemas = namedSchemas(publicSchemas, sentLeniently);
  const meanings = new Map(wordsOf("Fields").map(({ name, meaning }) => [name, meaning]));
  for (const { name, schema } of Object.values(schemas).flatMap((each) => [...fieldsOf(each)])) {
    const meaning = meanings.get(name);
    if (meaning !== undefined) schema.description ??= meaning;
  }
  for (const { body, refuses = {} } of publicApis.flatMap(({ operations }) => operations)) {
    const refused = Object.fromEntries(Object.entries(refuses).map(([field, { why }]) => [field, why]));
    const name = body && nameOf(body);
    if (name && Object.keys(refused).length > 0) schemas[name] = { ...schemas[name], "x-trunkline-refused": refused };
  }
  return schemas;
}

/** Returns the limits that clients may reach, by the names that error messages use. */
function publicLimits({ bodyBytesMax, bodyLimitName }: BodyLimit) {
  const { wholeAnswerCharactersMax, embeddingsCharactersMax } = limits;
  return [
    limit({ [bodyLimitName]: bodyBytesMax }, "bytes", "The body of a request. The operator chooses it."),
    limit({ headersBytesMax }, "bytes", "The headers of a request together."),
    limit({ headerLinesMax }, "headers", "The headers of a request."),
    limit({ urlBytesMax }, "bytes", "The URL of a request."),
    limit({ clientRequestCharactersMax }, "characters", "Your own name for a request."),
    limit({ modelIdCharactersMax }, "characters", "The id of a model."),
    limit({ messagesMax }, "messages", "A conversation, in messages or items."),
    limit({ metadataPairsMax }, "fields", "The `metadata` of a response."),
    limit(
      { repeatedCharactersMax },
      "characters",
      "The parts of its request that a response repeats: `instructions`, `tools` and the like.",
    ),
    limit({ responseCharactersMax }, "characters", "The answer of a response."),
    limit({ storedResponseBytesMax }, "bytes", "A stored response, with the input of its request."),
    limit({ storedTurnsMax }, "turns", "A conversation that goes on from stored responses."),
    limit({ storedTurnsBytesMax }, "bytes", "The stored turns that a request names."),
    limit({ storedResponsesMax }, "responses", "The stored responses of a key; the oldest go."),
    limit({ itemsPageMax }, "items", "A page of the input of a stored response."),
    limit({ modelsPageMax }, "models", "A page of the list for Anthropic's clients."),
    limit({ toolsMax }, "tools", "The tools of a request."),
    limit({ outerToolNameCharactersMax }, "characters", "The name of a tool."),
    limit({ stopsMax }, "texts", "The texts before which an answer ends."),
    limit({ completionsMax }, "answers", "The answers of a legacy completion: its prompts, times `n`."),
    limit({ embedInputsMax }, "texts", "The texts of one embeddings request."),
    limit({ formPartsMax }, "parts", "A form: its fields and files."),
    limit({ formFieldBytesMax }, "bytes", "A field of a form that is no file."),
    limit({ speechCharactersMax }, "characters", "A text that is spoken."),
    limit({ embedDimensionsMax }, "numbers", "A vector."),
    limit({ wholeAnswerCharactersMax }, "characters", "An answer that is not streamed."),
    limit({ embeddingsCharactersMax }, "characters", "The vectors of one answer, as written."),
    limit({ clientBacklogBytesMax }, "bytes", "The part of a stream that a slow reader may leave unread."),
  ];
}

function limit(named: Readonly<Record<string, number>>, unit: string, meaning: string) {
  const [name = "", value = 0] = Object.entries(named)[0] ?? [];
  return { name, value, unit, meaning };
}
