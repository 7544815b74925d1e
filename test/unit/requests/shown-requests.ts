import type { ShownRequest } from "#shared/requests/shown-request.ts";

type TriedMachine = ShownRequest["tried"][number];

/** A machine that a request was offered to. */
export const triedMachine = (machine: string, fields: Partial<TriedMachine> = {}): TriedMachine => ({
  machine,
  model: "llama3",
  at_ms: 2,
  reason: null,
  why: "costs least",
  cost_ms: 10,
  others: [],
  from_tokens: null,
  code: null,
  ...fields,
});

/** A request that the machine cellar answered. */
export const shownRequest = (fields: Partial<ShownRequest> = {}): ShownRequest => ({
  id: "req_1",
  at: "2026-11-27T14:03:00.000Z",
  key: "abcdefABCDEF",
  address: "10.0.0.7",
  user_agent: null,
  path: "/v1/chat/completions",
  streamed: true,
  model: "llama3",
  machine: "cellar",
  answered_by: "llama3",
  status: 200,
  code: "ok",
  ended_by: "machine",
  advice: null,
  limit: null,
  anew_after: null,
  accepted_ms: 1_010,
  load_wait_ms: null,
  first_token_ms: 1_200,
  total_ms: 2_000,
  prompt_tokens: 10,
  cached_tokens: null,
  completion_tokens: 20,
  tokens_per_second: 24,
  tried: [triedMachine("cellar")],
  tried_before: 0,
  refused_before: 0,
  ...fields,
});
