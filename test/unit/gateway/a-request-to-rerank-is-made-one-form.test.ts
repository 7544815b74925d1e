import { expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { rerankDocumentsMax } from "#shared/protocol/job-bodies.ts";
import { rankingBy, scoredDocuments } from "../../../services/gateway/apis/ranking/render-ranking.ts";
import { readRerankRequest, readScoreRequest } from "../../../services/gateway/apis/ranking/rerank-request.ts";
import { readRequest, renderingOf } from "../../harness/read-requests.ts";
import { faultThrownBy } from "../../harness/fault-thrown-by.ts";

const asked = { model: "rank", query: "blue sky", documents: ["grass", { text: "the sky" }] };
const body = { query: "blue sky", documents: ["grass", "the sky"] };

test("a request to rerank is a query and texts for machines, however its documents were written", () => {
  expect(readRerankRequest({ ...asked, top_n: null, return_documents: null })).toEqual({
    model: "rank",
    stream: false,
    body,
    ignored: [],
    form: { topN: undefined, documents: undefined },
  });
});

test("a request to rerank has unknown fields ignored by name", () => {
  expect(readRerankRequest({ ...asked, max_tokens_per_doc: 4_096 }).ignored).toEqual(["max_tokens_per_doc"]);
});

test.each<[code: string, param: string, fields: Record<string, unknown>]>([
  ["missing_required_parameter", "query", { query: undefined }],
  ["missing_required_parameter", "documents", { documents: null }],
  ["empty_array", "documents", { documents: [] }],
  ["array_above_max_length", "documents", { documents: Array(rerankDocumentsMax + 1).fill("a") }],
  ["invalid_type", "documents[1]", { documents: ["a", 7] }],
  ["missing_required_parameter", "documents[0].text", { documents: [{ title: "a" }] }],
  ["integer_below_min_value", "top_n", { top_n: 0 }],
  ["invalid_type", "return_documents", { return_documents: "yes" }],
])("a request to rerank is refused with %s at %s", (code, param, fields) => {
  expect(faultThrownBy(() => readRerankRequest({ ...asked, ...fields }))).toMatchObject({ code, param });
});

test("a request to rerank counts the query once for each document in its estimate", () => {
  const read = (documents: string[]) =>
    readRequest("rerank", Buffer.from(JSON.stringify({ model: "rank", query: "word ".repeat(100), documents })));
  const one = read(["a"]);
  const ten = read(Array<string>(10).fill("a"));
  expect(ten.tokens).toBeGreaterThan(one.tokens * 9);
  expect(ten.ceiling.promptTokens).toBeGreaterThan(ten.tokens);
});

const scored = { model: "rank", text_1: "blue sky", text_2: ["grass", "the sky"] };

test("a request for scores is a query and texts for machines, whether each text was written alone or in a list", () => {
  expect(readScoreRequest({ ...scored, use_activation: true })).toMatchObject({ body, ignored: ["use_activation"] });
  const alone = readScoreRequest({ ...scored, text_1: ["blue sky"], text_2: "grass" });
  expect(alone.body).toEqual({ query: "blue sky", documents: ["grass"] });
});

test.each<[code: string, param: string, fields: Record<string, unknown>]>([
  ["missing_required_parameter", "text_1", { text_1: null }],
  ["missing_required_parameter", "text_2", { text_2: undefined }],
  ["unsupported_value", "text_1", { text_1: ["a", "b"] }],
  ["empty_array", "text_1", { text_1: [] }],
  ["empty_array", "text_2", { text_2: [] }],
  ["array_above_max_length", "text_2", { text_2: Array(rerankDocumentsMax + 1).fill("a") }],
  ["invalid_type", "text_2[1]", { text_2: ["a", { text: "b" }] }],
  ["invalid_value", "text_1", { text_1: "" }],
])("a request for scores is refused with %s at %s", (code, param, fields) => {
  expect(faultThrownBy(() => readScoreRequest({ ...scored, ...fields }))).toMatchObject({ code, param });
});

test("a request for scores has the faults of its machine at its own fields", () => {
  const { kind, form } = readRequest("score", Buffer.from(JSON.stringify(scored)));
  expect(kind).toBe("rerank");
  const fault = new Fault("context_length_exceeded", { message: "'documents' is too long.", param: "documents" });
  expect(renderingOf("score", form, { streamed: false }).adaptFault(fault)).toMatchObject({
    param: "text_2",
    message: "'text_2' is too long.",
  });
});

test("a request for scores with several first texts is refused with the way to send them", () => {
  const fault = faultThrownBy(() => readScoreRequest({ ...scored, text_1: ["a", "b"] }));
  expect(fault.message).toContain("send a request for each text");
});

const head = { id: "rerank-1", createdSeconds: 1, model: "rank" };
const answer = (list: ReturnType<typeof scoredDocuments>, scores: number[]) => {
  list.push([{ kind: "scores", scores }]);
  list.push([{ kind: "usage", promptTokens: 9, completionTokens: 0 }]);
  return JSON.parse(Buffer.from(list.end()).toString()) as unknown;
};

test("the answer to a request to rerank has the most relevant documents first, only as many as were asked for, with their texts", () => {
  const list = scoredDocuments(head, rankingBy({ topN: 2, documents: ["a", "b", "c"] }));
  expect(answer(list, [-3, 2, 0.5])).toEqual({
    id: "rerank-1",
    object: "list",
    model: "rank",
    usage: { prompt_tokens: 9, total_tokens: 9 },
    results: [
      { index: 1, relevance_score: 2, document: { text: "b" } },
      { index: 2, relevance_score: 0.5, document: { text: "c" } },
    ],
  });
});

test("the answer to a request to rerank without scores is a fault of the machine", () => {
  const list = scoredDocuments(head, rankingBy({}));
  expect(faultThrownBy(() => list.end())).toMatchObject({ code: "upstream_error" });
});
