import { expect, test } from "vitest";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { stepsOf } from "#shared/requests/request-steps.ts";

const tried = (machine: string, atMs: number, code: string | null, fromTokens: number | null = null) => ({
  machine,
  model: "llama3.2",
  at_ms: atMs,
  reason: null,
  why: "costs least",
  cost_ms: 40,
  others: [],
  from_tokens: fromTokens,
  code,
});

const request: ShownRequest = {
  id: "req_1",
  at: "2026-11-27T14:03:00.000Z",
  key: "0aB1cD2eF3gH",
  address: "192.0.2.7",
  user_agent: null,
  path: "/v1/chat/completions",
  streamed: true,
  model: "llama3.2",
  machine: "cellar",
  answered_by: "llama3.2",
  status: 200,
  code: "ok",
  ended_by: "machine",
  advice: null,
  limit: null,
  anew_after: null,
  accepted_ms: 1_510,
  load_wait_ms: null,
  first_token_ms: 1_700,
  total_ms: 2_500,
  prompt_tokens: 10,
  cached_tokens: null,
  completion_tokens: 20,
  tokens_per_second: 24,
  tried: [tried("attic", 3, "agent_offline"), tried("cellar", 1_505, null)],
  tried_before: 0,
  refused_before: 0,
};

test("a machine that went on with an answer stands after the one that began it", () => {
  const continued = {
    ...request,
    accepted_ms: 5,
    first_token_ms: 40,
    tried: [tried("attic", 3, "agent_disconnected"), tried("cellar", 1_505, null, 12)],
  };
  expect(stepsOf(continued).map(({ atMs, text }) => [atMs, text])).toEqual([
    [0, "arrived"],
    [3, "offered to attic, as llama3.2: costs least"],
    [5, "attic took it"],
    [40, "first piece of the answer"],
    [1_505, "attic refused it or failed: agent_disconnected"],
    [1_505, "offered to cellar, as llama3.2, to go on after 12 tokens: costs least"],
    [2_500, "ended by the machine: ok, status 200, 24 tokens/s"],
  ]);
});

test("a request that no machine took has no step of one", () => {
  const refused = {
    ...request,
    tried: [],
    machine: null,
    accepted_ms: null,
    first_token_ms: null,
    tokens_per_second: null,
    total_ms: 5,
    code: "model_not_found",
    status: 404,
    ended_by: "gateway" as const,
  };
  expect(stepsOf(refused).map(({ text }) => text)).toEqual([
    "arrived",
    "ended by the gateway: model_not_found, status 404",
  ]);
});

test("a wait for the model's load stands with the machine that loaded it", () => {
  const waited = { ...request, load_wait_ms: 14_219, first_token_ms: 16_000, total_ms: 17_000 };
  expect(stepsOf(waited).map(({ text }) => text)).toContain("cellar took it; it waited 14.2 s for its model to load");
});
