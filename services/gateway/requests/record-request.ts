import type { IncomingHttpHeaders } from "node:http";
import type { Clock } from "#shared/process/clock.ts";
import type { requestEnders, TriedMachine, WrittenRecord } from "#shared/requests/request-record.ts";
import { faultEntry } from "#shared/fault/fault.ts";
import type { RequestFacts, RequestOutcome, RequestTrace } from "../http/request-state.ts";
import type { AnswerCourse } from "../jobs/answer-course.ts";
import type { Tried } from "../jobs/answer-parts.ts";
import type { Chosen } from "../routing/choose-machine.ts";

/** The machines that a record names; a request that fails over and over is offered to more. */
export const triedMax = 10;
/** Characters of a text of the client that a record keeps: its User-Agent, and the model that it named. */
export const recordedTextMax = 200;

/** The sender of a request, as its record names it. */
export interface RequestSender {
  readonly address: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly trace: RequestTrace;
}

export interface EndedRecord {
  readonly id: string;
  readonly at: number;
  readonly from: RequestSender;
  readonly facts: RequestFacts;
  readonly answer: Readonly<AnswerCourse>;
  readonly startedAtMs: number;
  readonly status: number;
  readonly totalMs: number;
  readonly limit: string | undefined;
  readonly anewAfter: string | undefined;
  readonly refusedBefore: number | undefined;
}

/** Returns the record of an ended request. It takes no text of the prompt or of the answer. */
export function recordOf(ended: EndedRecord): WrittenRecord {
  const { id, at, from, facts, answer: course, startedAtMs, status, totalMs, limit, anewAfter, refusedBefore } = ended;
  const { key: keyId = "", streamed = false, model: asked, outcome: code = "client_closed", answer } = facts;
  const { address, path, headers, trace } = from;
  const { machine, tried } = course;
  const cached = course.usage?.cachedTokens;
  return {
    id,
    at,
    keyId,
    address,
    agent: headers["user-agent"]?.slice(0, recordedTextMax),
    path,
    streamed,
    asked: asked?.slice(0, recordedTextMax),
    tried: tried.slice(-triedMax).map((each) => triedMachine(each, startedAtMs)),
    triedBefore: tried.length > triedMax ? tried.length - triedMax : undefined,
    machine,
    model: machine === undefined ? undefined : course.model,
    status,
    code,
    endedBy: enderOf(code, { tried, limit }),
    acceptedMs: rounded(answer?.acceptedMs),
    loadWaitMs: rounded(answer?.loadWaitMs),
    firstTokenMs: rounded(answer?.firstTokenMs),
    totalMs: Math.round(totalMs),
    promptTokens: answer?.promptTokens ?? 0,
    cachedTokens: cached === undefined ? undefined : Math.min(cached, answer?.promptTokens ?? 0),
    completionTokens: answer?.completionTokens ?? 0,
    cost: answer?.cost,
    limit,
    anewAfter,
    refusedBefore,
    trace: trace.id,
  };
}

function triedMachine(
  { offer, offeredAtMs, fromTokens, code }: Tried,
  startedAtMs: number,
): WrittenRecord["tried"][number] {
  const { chosen, next } = offer;
  const { loadMs, slotMs, backlogMs, promptMs, answerMs, delayMs, totalMs } = chosen.cost;
  return {
    machine: chosen.machine,
    model: chosen.model.id,
    atMs: Math.max(0, Math.round(offeredAtMs - startedAtMs)),
    reason: chosen.reason,
    cost: {
      totalMs: Math.round(totalMs),
      loadMs: part(loadMs),
      slotMs: part(slotMs),
      backlogMs: part(backlogMs),
      promptMs: part(promptMs),
      answerMs: part(answerMs),
      delayMs: part(delayMs),
      backlogTokens: part(chosen.load.backlogTokens),
    },
    cachedTokens: part(chosen.cachedTokens),
    others: next.length === 0 ? undefined : next.map(otherMachine),
    fromTokens,
    code,
  };
}

function otherMachine({ machine, cost, reason }: Chosen): TriedMachine["others"][number] {
  return { machine, totalMs: Math.round(cost.totalMs), reason };
}

/** A part of zero is left out of a record. */
function part(amount: number): number | undefined {
  return Math.round(amount) || undefined;
}

const endedByClient: ReadonlySet<string> = new Set(["client_closed", "slow_client"]);
const endedByKey: ReadonlySet<string> = new Set([
  "key_invalid",
  "key_expired",
  "insufficient_quota",
  "rate_limit_requests",
  "rate_limit_tokens",
  "concurrency_limit_exceeded",
]);

/**
 * Returns who ended a request. A fault is the machine's own if the last machine failed with it, and the client's if the
 * request is wrong.
 */
export function enderOf(
  code: RequestOutcome,
  { tried, limit }: { readonly tried: readonly Pick<Tried, "code">[]; readonly limit: string | undefined },
): (typeof requestEnders)[number] {
  if (endedByClient.has(code)) return "client";
  if (code === "cancelled_by_operator") return "operator";
  if (limit !== undefined || endedByKey.has(code)) return "key";
  const last = tried.at(-1);
  if (last !== undefined && (code === "ok" || last.code === code)) return "machine";
  return code !== "ok" && faultEntry(code).status < 500 ? "client" : "gateway";
}

function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.max(0, Math.round(ms));
}

/** Refusals of one key that are recorded each second; the others are counted in the next record of the key. */
export const refusalsRecordedPerSecond = 10;

/**
 * Decides which requests are recorded. A client that repeats a refused request without pause would push all other
 * requests out of the records.
 */
export class RecordedRefusals {
  readonly #clock: Pick<Clock, "now">;
  readonly #keys = new Map<string, { second: number; recorded: number; left: number }>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Returns the number of earlier refusals of the key without a record. Undefined if this one gets none either. */
  refused(keyId: string): number | undefined {
    const second = Math.floor(this.#clock.now() / 1_000);
    const key = this.#keys.getOrInsertComputed(keyId, () => ({ second, recorded: 0, left: 0 }));
    if (key.second !== second) Object.assign(key, { second, recorded: 0 });
    if (key.recorded === refusalsRecordedPerSecond) {
      key.left += 1;
      return undefined;
    }
    key.recorded += 1;
    const { left } = key;
    key.left = 0;
    return left;
  }
}
