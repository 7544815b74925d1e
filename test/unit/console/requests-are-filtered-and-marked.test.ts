import { expect, test } from "vitest";
import { markersOf } from "#shared/requests/request-words.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { isWanted, queryOf, type RequestFilter } from "../../../services/console/request-filter.ts";

const tried = (machine: string, from: number | null = null) => ({ machine, from_tokens: from });
const request = {
  at: "2026-11-27T14:03:00.000Z",
  key: "0aB1cD2eF3gH",
  model: "fast",
  answered_by: "Qwen3:8b",
  path: "/v1/chat/completions",
  code: "upstream_error",
  total_ms: 5_001,
  tried: [tried("attic")],
} as unknown as ShownRequest;

test.each<[words: string, given: RequestFilter, isIt: boolean]>([
  ["without a filter is shown", {}, true],
  ["that failed is shown among the failed ones", { outcome: "failed" }, true],
  ["is shown by its code", { outcome: "upstream_error" }, true],
  ["that failed is not shown among those that are ok", { outcome: "ok" }, false],
  ["is shown by a part of the model that answered", { model: "qwen" }, true],
  ["is shown by a part of its path", { api: "chat/completions" }, true],
  ["of another path is not shown", { api: "embeddings" }, false],
  ["is shown by the name of its key", { key: "alice" }, true],
  ["of another key is not shown", { key: "bob" }, false],
  ["that took longer is shown", { longer: "5" }, true],
  ["that took less is not shown", { longer: "6" }, false],
  ["of another machine is not shown", { machine: "cellar" }, false],
])("a request that just ended and %s", (_, given, isIt) => {
  expect(isWanted(request, given, "alice")).toBe(isIt);
});

test("an outcome is asked of the gateway as failed or as a code", () => {
  expect(queryOf({ outcome: "failed", api: "chat" })).toMatchObject({ failed: "true", code: undefined, api: "chat" });
  expect(queryOf({ outcome: "ok" })).toMatchObject({ failed: undefined, code: "ok" });
});

test.each([
  [[tried("attic")], {}, []],
  [[tried("attic"), tried("cellar")], {}, ["second machine"]],
  [[tried("attic"), tried("cellar", 12)], {}, ["went on elsewhere"]],
  [[tried("attic")], { code: "ok", limit: "budget" }, ["ended at a limit"]],
  [[], { code: "insufficient_quota", limit: "budget" }, []],
])("a request at the machines %j with the end %j is marked %j", (machines, end, marks) => {
  expect(markersOf(machines, end)).toEqual(marks);
});
