import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { faultCodes } from "#shared/fault/fault.ts";
import { chatRequest } from "../../../../services/gateway/apis/chat/chat-schema.ts";
import { messageRequest } from "../../../../services/gateway/apis/messages/message-schema.ts";
import { responseRequest } from "../../../../services/gateway/apis/responses/response-schema.ts";
import { answerHeaders } from "../../../../services/gateway/openapi/public-headers.ts";
import { fieldsOf } from "../../../../services/gateway/openapi/json-schemas.ts";
import { publicCodes, refusalsAs } from "../../../../services/gateway/openapi/public-faults.ts";
import { sections, publicSchemas } from "../../../../services/gateway/openapi/public-apis.ts";
import { publicDocument } from "../../../../services/gateway/openapi/public-document.ts";
import { wordsOf } from "../../../../services/gateway/openapi/words.ts";

const document = publicDocument({ bodyBytesMax: 1_024, bodyLimitName: "TRUNKLINE_BODY_BYTES_MAX" });
const text = JSON.stringify(document);
const { schemas } = document.components;
const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));

test("the document is OpenAPI 3.1", async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(text) as Record<string, unknown>);
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
  expect(document.openapi).toMatch(/^3\.1\./);
});

test("every reference leads somewhere", () => {
  const references = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/([^"]+)"/g)];
  expect(references.length).toBeGreaterThan(50);
  const components: Readonly<Record<string, object>> = { ...document.components };
  for (const [, kind = "", name = ""] of references) expect(Object.keys(components[kind] ?? {})).toContain(name);
});

test("fields all say what they are for", () => {
  const silent = Object.entries(schemas).flatMap(([name, schema]) =>
    [...fieldsOf(schema)].filter(({ schema: field }) => !field.description).map(({ path }) => `${name}.${path}`),
  );
  expect(silent).toEqual([]);
  const requests = { ChatRequest: chatRequest, ResponseRequest: responseRequest, MessageRequest: messageRequest };
  for (const [name, { shape }] of Object.entries(requests)) {
    const paths = [...fieldsOf(schemas[name] ?? {})].map(({ path }) => path);
    expect(paths).toEqual(expect.arrayContaining(Object.keys(shape)));
  }
});

test("fields words.md explains no field that the document lacks", () => {
  const fields = Object.entries(schemas).flatMap(([root, schema]) =>
    [...fieldsOf(schema)].map(({ name, path, schema: { description } }) => ({
      name,
      path: `${root}.${path}`,
      description,
    })),
  );
  const words = wordsOf("Fields");
  expect(words.length).toBeGreaterThan(100);
  const idle = words.filter(
    (word) =>
      !fields.some(({ name, path, description }) => [name, path].includes(word.name) && description === word.meaning),
  );
  expect(idle).toEqual([]);
});

test("fields may be more one day, except in the object of structured_outputs, which holds one of its fields", () => {
  const closed = Object.keys(schemas).filter((name) =>
    JSON.stringify(schemas[name]).includes('"additionalProperties":false'),
  );
  expect(closed).toEqual(["ChatRequest"]);
});

test("every fault that callers may see is told in the words that they see", () => {
  const unseen = Object.keys(faultCodes).filter((code) => !publicCodes.some((each) => each === code));
  expect(unseen).toEqual(
    `
  key_not_found machine_not_found keep_not_found price_not_found team_not_found person_not_found
  alert_not_found route_not_found request_not_found session_not_found key_change_refused machine_change_refused
  keep_change_refused price_change_refused team_change_refused person_change_refused alert_change_refused
  route_change_refused upgrade_required client_closed challenge_invalid join_invalid join_expired join_used machine_key_used machine_unknown
  machine_revoked wrong_proof direct_unavailable machine_name_used machines_unavailable cancelled
  slow_client job_unknown job_moved gateway_lost
`
      .trim()
      .split(/\s+/),
  );
  expect(document["x-trunkline-errors"]).toHaveLength(publicCodes.length);
});

test("errors of an operation are of the closed list, each with its status, and named once", () => {
  for (const { id, refusedAs, refusals = [] } of sections.flatMap((api) =>
    api.operations.map((operation) => ({ refusedAs: api.refusedAs ?? ("job" as const), ...operation })),
  ))
    expect(
      refusalsAs[refusedAs].filter((code) => refusals.includes(code)),
      id,
    ).toEqual([]);
  const told = document["x-trunkline-errors"].flatMap(({ status, messages_status: other = status, code }) => [
    `${status} ${code}`,
    `${other} ${code}`,
  ]);
  for (const { responses, operationId } of operations) {
    for (const [status, { "x-trunkline-codes": codes = [] }] of Object.entries(responses)) {
      for (const code of codes) expect(told, operationId).toContain(`${status} ${code}`);
    }
  }
});

test("errors are said to be retried just where official clients do so", () => {
  const retried = document["x-trunkline-errors"].filter((each) => each.retried).map(({ code }) => code);
  expect(retried).toEqual(expect.arrayContaining(["rate_limit_exceeded", "agent_offline", "upstream_error"]));
  for (const code of ["insufficient_quota", "internal_error", "upstream_timeout", "request_timeout", "key_invalid"])
    expect(retried).not.toContain(code);
});

test("words.md has a line for each operation, section and limit of the document, and no other", () => {
  const used = {
    Operations: operations.map(({ operationId }) => operationId),
    Sections: document.tags.map(({ name }) => name),
    Limits: document["x-trunkline-limits"].map(({ name }) => name.replace("TRUNKLINE_BODY_BYTES_MAX", "bodyBytesMax")),
    Streams: operations.flatMap(({ tags, responses }) =>
      (responses["200"]?.content["text/event-stream"] ?? responses["200"]?.content["application/x-ndjson"]) ? tags : [],
    ),
  };
  for (const [title, names] of Object.entries(used)) {
    const words = wordsOf(title).map(({ name }) => name);
    expect(words.toSorted(), title).toEqual([...new Set(names)].toSorted());
  }
});

test("every operation has a name of its own, an id in every answer, and needs a key unless it says so", () => {
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const { security, responses } of Object.values(methods)) {
      expect(security === undefined, path).toBe(/^\/(?:v1\/|api\/|(?:de)?tokenize$)/.test(path));
      expect(Object.keys(responses)).toContain("200");
      for (const { headers } of Object.values(responses)) expect(Object.keys(headers ?? {})).toContain("x-request-id");
    }
  }
});

test("requests are described by the schemas that they are read with", () => {
  const bodies = operations.flatMap(({ requestBody: { content = {} } = {} }) =>
    Object.values(content).flatMap(({ schema }) => schema.$ref ?? []),
  );
  expect(bodies.map((ref) => ref.split("/").at(-1))).toEqual(
    `
  ChatRequest ResponseRequest ResponseRequest ConversationRequest ConversationItemsRequest MessageRequest
  CountedMessage CompletionRequest EmbeddingsRequest RerankRequest ScoreRequest TranscriptionRequest
  TranslationRequest SpeechRequest ImageRequest ImageEditRequest ModerationRequest TokenizeRequest
  DetokenizeRequest OllamaChatRequest OllamaPromptRequest OllamaTextsRequest OllamaTextRequest
  OllamaShowRequest
`
      .trim()
      .split(/\s+/),
  );
  expect(publicSchemas["ChatRequest"]).toBe(chatRequest);
});

test("the body limit of this very gateway is told", () => {
  expect(document["x-trunkline-limits"][0]).toMatchObject({ name: "TRUNKLINE_BODY_BYTES_MAX", value: 1_024 });
});

test("headers that browsers are to hand on have a sentence each", () => {
  for (const { description } of Object.values(answerHeaders)) expect(description).toMatch(/^[`A-Z].*\.$/);
});
