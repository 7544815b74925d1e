import type { Log } from "#shared/process/log.ts";
import { faultEntry, Fault } from "#shared/fault/fault.ts";
import { addReplyHeaders, TimedResponse, writeWhole } from "../http/timed-response.ts";
import { logFieldsOf, stateOf } from "../http/request-state.ts";
import { machineHeader, modelHeader, StreamWriter, CollectedAnswer } from "../jobs/write-answer.ts";
import type { FastifyReply } from "fastify";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import type { AnswerCourse, AnswerRenderer, AnswerWriter, JobOffer } from "../jobs/answer-course.ts";
import type { AnswerPlace } from "../jobs/resume-answer.ts";
import type { ResumedAnswer } from "#shared/protocol/frame-payload.ts";
import type { Placement } from "../jobs/place-job.ts";
import type { InferenceDependencies, Rendering } from "./endpoint.ts";
import { type AskedEffort, jobBody } from "./read-request.ts";
import type { RequestAccount } from "./request-account.ts";
import { staying } from "./resumable-answer.ts";
import { callerOf } from "../keys/authenticate.ts";
import { rateLimitLines } from "./limit-responses.ts";

/** A request that may run: its reply, and the part of its placement that is the same for streamed and whole answers. */
export interface Admitted extends Omit<Rendering, "render"> {
  readonly reply: FastifyReply;
  readonly leaving: AbortController;
  readonly account: RequestAccount;
  /** One object to the end, since the placer releases the body in it: a copy would keep the body while the answer runs. */
  readonly job: Omit<Placement, "listener">;
  readonly streamed: boolean;
  /** Creates the renderer of an answer by this model. Another machine's answer to the same request is rendered anew. */
  readonly render: (model: string, offer: JobOffer, resumed?: ResumedAnswer) => AnswerRenderer;
  readonly ignored: string[];
  /** The effort of the request, when the job may run without it. */
  readonly effort: AskedEffort | undefined;
  /** The place after which the client resumes an answer, in place of a new one. */
  readonly resumes?: AnswerPlace | undefined;
  /** Time for which the job goes on without its client; undefined if it ends with it. */
  readonly staysMs?: number | undefined;
}

type RunDependencies = Pick<InferenceDependencies, "placer" | "resumer" | "refusedEfforts">;

/** Names the limit of the key that ended an answer: in the headers of a whole answer, in a comment of a stream. */
const limitHeader = "x-trunkline-limit";

/**
 * Runs the job of a request. A job whose model or runtime lacks an effort that may be left out runs once more without
 * it, and the answer names the field as ignored.
 */
async function runJob(
  admitted: Admitted,
  listener: AnswerCourse,
  { placer, resumer, refusedEfforts }: RunDependencies,
): Promise<void> {
  const { job, effort, resumes: place } = admitted;
  if (place !== undefined) {
    await resumer.run({ place, keyId: job.keyId, course: listener, signal: job.signal });
    return;
  }
  if (effort === undefined || !refusedEfforts.has(job.modelId, effort.value)) {
    try {
      await placer.run(Object.assign(job, { listener }));
      return;
    } catch (thrown) {
      const lacksEffort = thrown instanceof Fault && thrown.param === "reasoning_effort";
      if (effort === undefined || !lacksEffort) throw thrown;
      refusedEfforts.note(job.modelId, effort.value);
    }
  }
  admitted.ignored.push(effort.field);
  nameIgnored(admitted.reply, admitted.ignored);
  const { reasoning_effort: _, ...body } = JSON.parse(Buffer.from(job.body).toString()) as ChatBody;
  await placer.run(Object.assign(job, { listener }, jobBody(body)));
}

/**
 * Runs the job of a request to its end, or to the end of what the limits of its key have left. The answer then ends as
 * at `max_tokens`, after `tell` has told the limit.
 */
async function runWithinLimits(
  admitted: Admitted,
  { writer, tell }: { readonly writer: AnswerWriter; readonly tell: (limit: string) => void },
  dependencies: RunDependencies,
): Promise<void> {
  const { account, reply, render, leaving, job, streamed, staysMs } = admitted;
  const stay = staysMs === undefined ? leaving : staying(leaving.signal, staysMs);
  const ended = staysMs === undefined ? undefined : callerOf(reply.request).begin?.(stay);
  Object.assign(job, { signal: stay.signal });
  try {
    const mayContinue = streamed && (job.kind === "chat" || job.kind === "complete");
    await runJob(admitted, account.following(writer, { render, leaving: stay, mayContinue }), dependencies);
  } catch (thrown) {
    const limit = account.cutBy;
    if (limit === undefined) throw thrown;
    stateOf(reply.request).reason = `the answer ended at a limit of its key (${limit})`;
    tell(limit);
    account.endShort();
  } finally {
    ended?.();
  }
}

/** Runs a request and sends its answer. An answer that outlives its client is still counted as one of this request. */
export function sendAnswer(admitted: Admitted, dependencies: InferenceDependencies): Promise<void> {
  const { account, streamed, staysMs, leaving } = admitted;
  leaving.signal.throwIfAborted();
  const sending = streamed ? answerStream(admitted, dependencies) : answerWhole(admitted, dependencies);
  if (staysMs !== undefined) account.staysUntil(sending);
  return sending;
}

/**
 * Runs a request and sends its answer piece by piece. A failure before the first piece is thrown, and becomes an answer
 * with a status. A later failure is reported inside the stream.
 */
async function answerStream(admitted: Admitted, dependencies: InferenceDependencies): Promise<void> {
  const { reply, account, adaptFault, job } = admitted;
  const { timing, log } = dependencies;
  const writer = streamOf(admitted, { timing, routed: job.routed });
  try {
    const tell = (limit: string): void => writer.tell(`${limitHeader}: ${limit}`);
    await runWithinLimits(admitted, { writer, tell }, dependencies);
  } catch (thrown) {
    const fault = adaptFault(Fault.from(thrown));
    // The request may still be answered: its caller makes an answer anew that is gone.
    if (!writer.begun && !isBrokenOff(fault)) throw fault;
    failStream({ reply, account }, { writer, fault, log });
    return;
  }
  await keepAnswer(admitted, writer, dependencies);
  await account.ended(200);
  reply.hijack();
  if (!reply.raw.destroyed) writer.end();
}

/** Opens the stream of an answer. Its status line is written once, by whichever writer of the response begins first. */
export function streamOf(
  { reply, leaving, ends }: Pick<Admitted, "reply" | "leaving" | "ends">,
  { timing, routed }: Pick<InferenceDependencies, "timing"> & Pick<Placement, "routed">,
): StreamWriter {
  return new StreamWriter({
    response: reply.raw,
    ends,
    timing,
    headers: () => {
      const lines = rateLimitLines(reply.request);
      addReplyHeaders(lines, reply);
      return lines;
    },
    onAccept: (machine, model) => nameSource(reply, { machine, model, routed }),
    onSlow: (fault) => leaving.abort(fault),
  });
}

/** Ends a stream that has begun with the event of its fault, and breaks that of a client that has left. */
export function failStream(
  { reply, account }: Pick<Admitted, "reply" | "account">,
  { writer, fault, log }: { readonly writer: StreamWriter; readonly fault: Fault; readonly log: Log },
): void {
  account.endedIn(fault.code);
  stateOf(reply.request).reason = fault.reason;
  const fields = { ...logFieldsOf(reply.request), code: fault.code, internal: fault.reason };
  if (faultEntry(fault.code).status < 500) log.debug(fields, "stream ended by its client or its key");
  else log.warn(fields, "stream failed");
  reply.hijack();
  if (isBrokenOff(fault)) reply.raw.destroy();
  else writer.fail(fault);
}

/**
 * True if the connection breaks without an error. A client that is still there when another request of its own takes its
 * answer over asks again: that request may be an earlier one, which was on its way for longer.
 */
function isBrokenOff({ code }: Fault): boolean {
  return code === "slow_client" || code === "client_closed";
}

/** Keeps an answer that is to be kept, before its client gets the last byte. The last bytes say so if it could not be kept. */
async function keepAnswer(
  { keep, reply }: Admitted,
  writer: StreamWriter | CollectedAnswer,
  dependencies: InferenceDependencies,
): Promise<void> {
  const change = await keep?.(callerOf(reply.request).key.id, dependencies);
  if (change !== undefined) writer.changeLast(change);
}

/** Names the machine that answers in the headers, and the model if it has another name than the client asked for. */
function nameSource(
  reply: FastifyReply,
  { machine, model, routed }: { readonly machine: string; readonly model: string; readonly routed: string | undefined },
): void {
  void reply.header(machineHeader, machine);
  // The characters of a model's id are not bound to those of a header.
  if (routed !== undefined) void reply.header(modelHeader, encodeURI(model));
}

const jsonMedia = "application/json; charset=utf-8";

/** Runs a request and sends its answer in one piece, once the answer is complete. */
async function answerWhole(admitted: Admitted, dependencies: InferenceDependencies): Promise<void> {
  const { reply, leaving, account, job, media = jsonMedia, adaptFault } = admitted;
  const collected = new CollectedAnswer({
    onTooLarge: (fault) => leaving.abort(fault),
    onAccept: (machine, model) => nameSource(reply, { machine, model, routed: job.routed }),
    hasLeft: () => reply.raw.destroyed,
    onGrow: (bytes) => {
      if (reply.raw instanceof TimedResponse) reply.raw.keptBytes = bytes;
    },
  });
  try {
    const tell = (limit: string): void => void reply.header(limitHeader, limit);
    await runWithinLimits(admitted, { writer: collected, tell }, dependencies);
  } catch (thrown) {
    const fault = adaptFault(Fault.from(thrown));
    if (!isBrokenOff(fault)) throw fault;
    account.endedIn(fault.code);
    reply.hijack();
    reply.raw.destroy();
    return;
  }
  await keepAnswer(admitted, collected, dependencies);
  await account.ended(200);
  const lines = rateLimitLines(reply.request);
  lines.push("content-type", media);
  writeWhole(reply, lines, collected.bytes());
}

export function nameIgnored(reply: FastifyReply, ignored: readonly string[]): void {
  const names = ignoredHeader(ignored);
  if (names === undefined) reply.removeHeader("x-trunkline-ignored");
  else reply.header("x-trunkline-ignored", names);
}

const nameCharactersMax = 100;

/**
 * Returns the names of ignored fields as a header value, or undefined when there are none. The client chooses the
 * names, so they are encoded.
 */
export function ignoredHeader(ignored: readonly string[]): string | undefined {
  if (ignored.length === 0) return undefined;
  return namedShortly(ignored.map((name) => encode(name.slice(0, nameCharactersMax))));
}

function encode(name: string): string {
  return name.replace(/[^\w.[\]-]+/g, (odd) => `%${Buffer.from(odd).toString("hex").match(/../g)?.join("%") ?? ""}`);
}

const bytesMax = 1_024;

/**
 * Joins names into a header value: as many as fit into `bytesMax`, then the number of the others. Clients refuse long
 * headers.
 */
export function namedShortly(names: readonly string[]): string {
  let value = "";
  for (const [place, name] of names.entries()) {
    const next = place === 0 ? name : `${value},${name}`;
    if (next.length > bytesMax)
      return value === "" ? `${names.length} names` : `${value},+${names.length - place} more`;
    value = next;
  }
  return value;
}
