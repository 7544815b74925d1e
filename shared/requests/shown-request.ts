import { z } from "zod";
import { isFaultCode } from "../fault/fault.ts";
import { cachedText, costText, rankWords } from "../fleet/rank-words.ts";
import { rankReasons } from "../fleet/shown-fleet.ts";
import { faultAdvice } from "./fault-advice.ts";
import { requestEnders, type RequestRecord, tokensPerSecond, type TriedMachine } from "./request-record.ts";

const count = z.int().nonnegative();
const reason = z.enum(rankReasons).nullable().describe("What decided its place; null when nothing was against it.");
const why = z.string().describe("Why it had this place, in words.");

const shownTried = z.object({
  machine: z.string(),
  model: z.string().describe("The model by its id on this machine."),
  at_ms: count.describe("When it was offered the request."),
  reason,
  why,
  cost_ms: count.describe("What the request was expected to cost there."),
  others: z
    .array(z.object({ machine: z.string(), reason, why, cost_ms: count }))
    .describe("The machines that came next, the nearest first."),
  from_tokens: count
    .nullable()
    .describe("Tokens of the answer that were delivered before, if it was to go on from there."),
  code: z.string().nullable().describe("The code with which it refused the request or failed."),
});

/** The record of a request, in the format for operators. */
export const shownRequest = z.object({
  id: z.string().describe("The id that the client got as x-request-id."),
  at: z.iso.datetime().describe("When it arrived. Times in milliseconds count from here."),
  key: z.string(),
  address: z.string(),
  user_agent: z.string().nullable(),
  path: z.string().describe("The API, by its path."),
  streamed: z.boolean(),
  model: z.string().nullable().describe("The model as the client named it; null if it was not read so far."),
  machine: z.string().nullable().describe("The machine that took it; null if none did."),
  answered_by: z.string().nullable().describe("The model by its id on that machine."),
  status: count,
  code: z.string().describe("ok, or the code of the fault in which it ended."),
  ended_by: z.enum(requestEnders).describe("Whose doing its end was."),
  advice: z.string().nullable().describe("What to do about the fault; null where its message says that."),
  limit: z.string().nullable().describe("The limit of the key that refused it or ended its answer."),
  anew_after: z
    .string()
    .nullable()
    .describe("The machine that has lost the answer of its Idempotency-Key, which was therefore made anew."),
  accepted_ms: count.nullable().describe("When a machine took it."),
  load_wait_ms: count.nullable().describe("How long it waited there for its model to load; null if not at all."),
  first_token_ms: count.nullable().describe("When the first piece of the answer came."),
  total_ms: count,
  prompt_tokens: count,
  cached_tokens: count.nullable().describe("Tokens of the prompt that the machine had cached, where it tells."),
  completion_tokens: count,
  // Gateways of 0.2.0 leave it out.
  cost: count.nullish().describe("In millionths of the currency of the site; null where its model has no price."),
  // Gateways of 0.2.0 leave it out.
  trace: z.string().nullish().describe("The id of its OpenTelemetry trace; null if it was not traced."),
  tokens_per_second: z.number().nullable().describe("Of a stream, after its first token."),
  tried: z.array(shownTried).describe("The machines that were offered it, the latest last."),
  tried_before: count.describe("Machines tried before those (triedMax)."),
  refused_before: count.describe(
    "Refusals of the key just before, without a record of their own (refusalsRecordedPerSecond).",
  ),
});
export type ShownRequest = z.infer<typeof shownRequest>;

export function showRequest(record: RequestRecord): ShownRequest {
  const { code } = record;
  const speed = tokensPerSecond(record);
  return {
    id: record.id,
    at: new Date(record.at).toISOString(),
    key: record.keyId,
    address: record.address,
    user_agent: record.agent ?? null,
    path: record.path,
    streamed: record.streamed,
    model: record.asked ?? null,
    machine: record.machine ?? null,
    answered_by: record.model ?? null,
    status: record.status,
    code,
    ended_by: record.endedBy,
    advice: (isFaultCode(code) && faultAdvice[code]) || null,
    limit: record.limit ?? null,
    anew_after: record.anewAfter ?? null,
    accepted_ms: record.acceptedMs ?? null,
    load_wait_ms: record.loadWaitMs ?? null,
    first_token_ms: record.firstTokenMs ?? null,
    total_ms: record.totalMs,
    prompt_tokens: record.promptTokens,
    cached_tokens: record.cachedTokens ?? null,
    completion_tokens: record.completionTokens,
    cost: record.cost ?? null,
    trace: record.trace ?? null,
    tokens_per_second: speed === undefined ? null : Math.round(speed * 10) / 10,
    tried: record.tried.map(showTried),
    tried_before: record.triedBefore ?? 0,
    refused_before: record.refusedBefore ?? 0,
  };
}

function showTried(tried: TriedMachine): ShownRequest["tried"][number] {
  const { machine, model, atMs, reason: because, cost, others, fromTokens, code } = tried;
  const parts = costText(cost, cost.backlogTokens);
  return {
    machine,
    model,
    at_ms: atMs,
    reason: because ?? null,
    why: [whyFirst(tried), parts].filter((each) => each !== "").join(": "),
    cost_ms: cost.totalMs,
    others: others.map((other) => ({
      machine: other.machine,
      reason: other.reason ?? null,
      why: other.reason === undefined ? "came next" : rankWords[other.reason],
      cost_ms: other.totalMs,
    })),
    from_tokens: fromTokens ?? null,
    code: code ?? null,
  };
}

function whyFirst({ reason: because, others, cachedTokens }: TriedMachine): string {
  if (because === "warm") return cachedText(cachedTokens);
  if (because !== undefined && (others.length > 0 || because !== "drawn")) return rankWords[because];
  return others.length === 0 ? "no other machine could take it" : "costs least";
}
