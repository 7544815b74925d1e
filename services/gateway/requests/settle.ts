import type { KeyRecord } from "#shared/records/key-record.ts";
import type { EndedAnswer, EndedSums } from "#shared/history/sums.ts";
import type { UsageRow } from "#shared/usage/usage.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { AnswerCourse } from "../jobs/answer-course.ts";
import type { AnswerMeter } from "../jobs/answer-parts.ts";
import type { Reservation, RunningRequest } from "../limits/limits.ts";
import type { Settlements } from "../limits/settlements.ts";
import { believed, type BookedCounts, type Demanded, reportedTokens, windowOf } from "./booked-tokens.ts";
import type { EarlyLimits } from "./limit-responses.ts";
import { type EndedRecord, type RecordedRefusals, recordOf, type RequestSender } from "./record-request.ts";
import { resumesAnswer } from "./resumable-answer.ts";
import type { RequestFacts, RequestOutcome } from "../http/request-state.ts";
import { budgetPeriodAt } from "../limits/budgets.ts";
import type { TokenCounts } from "../limits/token-estimates.ts";

declare module "../http/request-state.ts" {
  interface RequestTrace {
    /** Called once the request is booked. `model` is the model in the books: null for a name that may be invented. */
    settled(request: ToldRequest, facts: RequestFacts, model: string | null): void;
  }
}

/** The wish of a client, by the model's name. */
export interface AskedModel {
  readonly model: string;
  readonly streamed: boolean;
  /** The name, if a route leads from it to models; and the first of these models. */
  readonly routed?: string | undefined;
  readonly routedTo?: string | undefined;
}

/** A request as it is booked, logged and recorded. */
export interface ToldRequest {
  readonly id: string;
  readonly key: KeyRecord;
  readonly endUser: string | null;
  readonly from: RequestSender;
  /** Undefined until the request is read. */
  readonly asked: AskedModel | undefined;
  readonly demanded: Demanded | undefined;
  /** The part of its books that the request holds; undefined where they have no limits. */
  readonly reservation: Reservation | undefined;
  readonly answer: AnswerCourse;
  readonly startedAtMs: number;
  readonly endedAtMs: number | undefined;
  /** Undefined as long as the outcome is unknown. */
  readonly outcome: RequestOutcome | undefined;
  /** The status that its client got, or would have got. */
  readonly status: number;
  /** The limit that has ended the answer, or refused the request. */
  readonly limit: string | undefined;
  /** True for a request that resumes an answer. */
  readonly isResuming: boolean;
  /**
   * Set for a request with an `Idempotency-Key`: all requests with one name count as one, unless the answer is made anew
   * after a machine that has lost it.
   */
  readonly once: { readonly anewAfter: string | undefined } | undefined;
}

export interface SettleParts {
  readonly settlements: Settlements;
  readonly early?: Pick<EarlyLimits, "forget"> | undefined;
  /** Absent where no records of requests are kept. */
  readonly recorded?: Pick<RecordedRefusals, "refused"> | undefined;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
  readonly meter?: AnswerMeter | undefined;
  /** The machines that run their models elsewhere. */
  readonly external: ReadonlySet<string>;
  readonly history: { add(ended: EndedSums, answer: EndedAnswer): void };
}

/** Books an ended request, and writes its record: the one place for both. Returns its facts, which change no more. */
export function settle(request: ToldRequest & RunningRequest, parts: SettleParts): RequestFacts {
  const { early, settlements, recorded, history, clock } = parts;
  const { reservation, answer, outcome = "client_closed", status } = request;
  const { machine, tried } = answer;
  const reported = reportedTokens(request);
  const counted = believed(request, reported);
  const booked = { ...counted, cost: request.demanded?.rate.costOf(request, counted, parts) };
  const facts = factsOf(request, booked);
  const usage = usageRow(request, booked, outcome, parts);
  if (reservation !== undefined && machine === undefined) early?.forget(reservation.held);
  const refusedBefore = outcome !== "ok" && tried.length === 0 ? recorded?.refused(request.key.id) : 0;
  const isRecorded = recorded !== undefined && refusedBefore !== undefined;
  const ended = { facts, status, totalMs: usage.durationMs, refusedBefore: refusedBefore || undefined };
  settlements.end({
    reservation,
    ran: machine !== undefined || request.isResuming,
    usedTokens: counted.promptTokens + counted.completionTokens,
    usage,
    request: isRecorded ? recordText(request, ended, clock) : undefined,
    running: request,
  });
  history.add(usage, { machine, cachedTokens: answer.usage?.cachedTokens, code: outcome });
  request.from.trace.settled(request, facts, usage.model);
  if (reported !== counted) tellNotBelieved(request, { reported, counted }, parts);
  return facts;
}

/** Returns what is booked of a request if its gateway is killed now; undefined while no machine works for it. */
export function usedNow(request: ToldRequest, parts: SettleParts): UsageRow | undefined {
  const { machine, toldTokens = Infinity, countedTokens = 0 } = request.answer;
  if (machine === undefined) return undefined;
  const taken = believed(request, reportedTokens(request));
  const completionTokens = Math.min(taken.completionTokens, Math.max(0, toldTokens - countedTokens));
  const counted = { ...taken, completionTokens };
  const booked = { ...counted, cost: request.demanded?.rate.costOf(request, counted, parts) };
  return usageRow(request, booked, request.outcome ?? "gateway_lost", parts);
}

/** Returns the record of a request for that case, as JSON; undefined where none are kept. */
export function recordNow(request: ToldRequest, { recorded, clock }: SettleParts): string | undefined {
  if (recorded === undefined) return undefined;
  const totalMs = Math.round(clock.now() - request.startedAtMs);
  const facts = { ...factsOf(request), outcome: request.outcome ?? "gateway_lost" };
  return recordText(request, { facts, status: 200, totalMs, refusedBefore: undefined }, clock);
}

function recordText(
  { id, from, answer, startedAtMs, limit, once }: ToldRequest,
  ended: Pick<EndedRecord, "facts" | "status" | "totalMs" | "refusedBefore">,
  clock: Clock,
): string {
  const at = clock.wall() - ended.totalMs;
  return JSON.stringify(recordOf({ id, at, from, answer, startedAtMs, limit, anewAfter: once?.anewAfter, ...ended }));
}

function tellNotBelieved(
  request: ToldRequest,
  told: { readonly reported: TokenCounts; readonly counted: TokenCounts },
  { log, meter }: SettleParts,
): void {
  const { machine } = request.answer;
  if (machine === undefined) return;
  meter?.usageNotBelieved(machine);
  const { id, key, asked } = request;
  log.warn(
    { request: id, key: key.id, model: asked?.model, machine, window: windowOf(request), ...told },
    "a machine reported more tokens than the request can have used, of which only the possible ones are counted; if the window of its model is larger, set context_window in its TRUNKLINE_MODELS_FILE",
  );
}

/** Outcomes of requests whose model may never have existed. */
const inventedIn: ReadonlySet<string> = new Set(["model_not_found", "backend_unavailable", "client_closed"]);

/** Returns the row of a request in the books as it would be written now. */
function usageRow(
  told: ToldRequest,
  { promptTokens, completionTokens, cost = 0 }: BookedCounts,
  outcome: RequestOutcome,
  { clock, external }: Pick<SettleParts, "clock" | "external">,
): UsageRow {
  const { answer, once, startedAtMs } = told;
  const { machine = null } = answer;
  const isCounted = answer.countedTokens !== undefined;
  const hasLeft = outcome === "client_closed";
  // A client may give up the gateway at which it wanted to resume its answer.
  const isGivenUp = hasLeft && resumesAnswer(told.from.headers) && !isCounted;
  const isRepeat = once !== undefined && (told.isResuming || (hasLeft && answer.machine === undefined));
  // A request that resumes an answer is no other request: the one before it is in the books.
  const isResumed = isCounted || isGivenUp || isRepeat;
  const comesBack = isGivenUp || (once !== undefined && isResumed && hasLeft);
  const firstAtMs = isResumed ? undefined : firstTokenAtMs(told);
  return {
    day: budgetPeriodAt("day", clock.wall()).name,
    keyId: told.key.id,
    team: told.key.team ?? null,
    person: told.key.person ?? null,
    kind: machine !== null && external.has(machine) ? "external" : null,
    model: bookedModel(told, outcome),
    machine,
    endUser: told.endUser,
    requests: isResumed ? 0 : 1,
    failed: outcome === "ok" || answer.isMoved || comesBack ? 0 : 1,
    promptTokens,
    completionTokens,
    answered: firstAtMs === undefined ? 0 : 1,
    firstTokenMs: firstAtMs === undefined ? 0 : Math.round(firstAtMs - startedAtMs),
    durationMs: Math.round(clock.now() - startedAtMs),
    cost,
  };
}

/**
 * Returns the model name for the books, or null for a name that may be the client's own invention. Invented names
 * would fill the books without end.
 */
function bookedModel({ answer, asked }: ToldRequest, outcome: RequestOutcome): string | null {
  if (asked === undefined || (answer.machine === undefined && inventedIn.has(outcome))) return null;
  const { model, routedTo } = asked;
  return routedTo === undefined ? model : (answer.model ?? routedTo);
}

/** Returns the facts of a request for its log line, its metrics and its record. */
export function factsOf(told: ToldRequest, counted: BookedCounts = believed(told, reportedTokens(told))): RequestFacts {
  const { tried, machine, model, failovers, acceptedAtMs, loadWaitMs } = told.answer;
  const since = (atMs: number | undefined): number | undefined =>
    atMs === undefined ? undefined : atMs - told.startedAtMs;
  return {
    key: told.key.id,
    team: told.key.team,
    model: told.asked?.model,
    streamed: told.asked?.streamed === true,
    outcome: told.outcome,
    answer: {
      jobs: tried.map(({ offer }) => offer.job),
      machine,
      model,
      failovers,
      acceptedMs: since(acceptedAtMs),
      loadWaitMs,
      firstTokenMs: since(firstTokenAtMs(told)),
      endedMs: since(told.endedAtMs),
      ...counted,
    },
  };
}

/** Returns the time of the first token. A whole answer has none, as its client sees all of it at once. */
function firstTokenAtMs({ asked, answer }: ToldRequest): number | undefined {
  return asked?.streamed === true ? answer.firstAtMs : undefined;
}
