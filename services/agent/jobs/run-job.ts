import { randomBytes } from "node:crypto";
import type { AnswerEvent, FinishReason, Usage } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import { type Clock, untilAborted } from "#shared/process/clock.ts";
import { addRecords, type DataRecord } from "#shared/protocol/frame.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import { abilityAt, decodeMediaBody } from "#shared/protocol/media-body.ts";
import { isAble } from "#shared/protocol/model.ts";
import type { ServedModel } from "../models/model-set.ts";
import { completeEach, embedInBatches, fanOut, textsAtOnce } from "../runtimes/fan-out.ts";
import { readAnyBody, unknownPart } from "../runtimes/json-bodies.ts";
import { refuseIncapable } from "../runtimes/refuse-unsupported.ts";
import type { EmitEvents, Silence } from "../runtimes/runtime.ts";
import type { Job, Outcome } from "./job.ts";

/** The parts of a job that its run reads and changes. */
type RunningJob = Pick<Job, "head" | "body" | "signal" | "width" | "state" | "silence" | "isHeldBack" | "answering"> &
  Pick<Job, "progressAtMs" | "firstTokenAtMs"> & { readonly outbox: Pick<Job["outbox"], "write"> };

/**
 * Runs one job on its runtime, notes its progress and writes its answer events as records. Always returns one outcome: when
 * the signal aborts, at once and with the signal's reason, even if the adapter hangs.
 */
export async function runJob(job: RunningJob, served: ServedModel, clock: Pick<Clock, "now">): Promise<Outcome> {
  const { signal, outbox } = job;
  const assembly = new AnswerAssembly(job.head);
  const onProgress = (silence?: Silence): void => {
    job.progressAtMs = clock.now();
    job.silence = silence;
    if (silence !== undefined && (job.state === "prefill" || job.state === "loading")) job.state = silence;
  };
  const write = (events: readonly AnswerEvent[]): Promise<void> | undefined => {
    const records: DataRecord[] = [];
    for (const event of events) addRecords(event, records);
    job.progressAtMs = clock.now();
    if (records.length > 0 && job.firstTokenAtMs === undefined) job.answering();
    const room = outbox.write(records, assembly.outputTokens);
    return room === undefined ? undefined : holdBack(job, room, clock);
  };
  const emit: EmitEvents = (events) => (signal.aborted ? undefined : write(assembly.push(events)));
  try {
    await untilAborted(signal, askRuntime(job, served, { emit, onProgress }));
    void write(assembly.end());
    return { outcome: "end", finishReason: assembly.finishReason, usage: assembly.usage };
  } catch (thrown) {
    const fault = Fault.from(signal.aborted ? signal.reason : thrown);
    return { outcome: "fault", fault, usage: assembly.usage };
  }
}

/** Waits for room in the outbox. The runtime is not read on meanwhile. */
async function holdBack(job: RunningJob, room: Promise<void>, clock: Pick<Clock, "now">): Promise<void> {
  job.isHeldBack = true;
  await room;
  job.isHeldBack = false;
  job.progressAtMs = clock.now();
}

/**
 * Reads a job's body by its kind, and sends the request to its runtime. Resolves with the promise of the runtime, so that
 * nothing here holds the body while the answer lasts.
 */
async function askRuntime(
  job: RunningJob,
  served: ServedModel,
  { emit, onProgress }: { readonly emit: EmitEvents; readonly onProgress: (silence?: Silence) => void },
): Promise<void> {
  const { head, body = new Uint8Array(), signal } = job;
  const { runtime, ownId, model } = served;
  const { capabilities, context_window: contextWindow } = model;
  const { cacheSalt, traceparent } = head;
  const run = { model: ownId, capabilities, contextWindow, cacheSalt, traceparent, signal, onProgress };
  if (head.kind === "embed") {
    const embed = requireMethod(model, runtime.embed?.bind(runtime), capabilities.embedding, "does not embed");
    const texts = await readAnyBody("embed", body);
    job.width = Math.min(texts.input.length, textsAtOnce);
    return embedInBatches(embed, { ...run, body: texts }, emit);
  }
  if (head.kind === "rerank") {
    const rerank = requireMethod(model, runtime.rerank?.bind(runtime), isAble(model, "rerank"), "does not rerank");
    const query = await readAnyBody("rerank", body);
    onProgress("prefill");
    const { scores, promptTokens } = await rerank({ ...run, body: query });
    return emit([{ kind: "scores", scores }, ...closing(promptTokens)]);
  }
  if (head.kind === "media") {
    const media = decodeMediaBody(body);
    if (media === undefined) throw unknownPart(undefined, "the body of a media job has another form");
    const isFit = isAble(model, abilityAt[media.path]);
    const ask = requireMethod(model, runtime.media?.bind(runtime), isFit, `does not take '${media.path}'`);
    return ask({ ...run, body: media }, emit);
  }
  if (head.kind === "complete") {
    const lack = "does not continue texts; it may be asked at /v1/chat/completions";
    const complete = requireMethod(model, runtime.complete?.bind(runtime), capabilities.completion, lack);
    const completion = await readAnyBody("complete", body);
    return completeEach(complete, { ...run, body: completion }, emit);
  }
  const chatRun = { ...run, body: await readAnyBody("chat", body) };
  const { n } = chatRun.body;
  refuseIncapable({ model: model.id, capabilities, body: chatRun.body });
  if (head.kind === "count") {
    if (runtime.count === undefined) throw unsupported(`The runtime of the model '${model.id}' does not count tokens.`);
    return emit(closing(await runtime.count(chatRun)));
  }
  if (n !== undefined && !runtime.answersSeveral) return fanOut(runtime.chat.bind(runtime), chatRun, emit);
  job.width = n ?? 1;
  return runtime.chat(chatRun, emit);
}

/** Returns a method of a runtime. Throws if the runtime or the model lacks it. */
function requireMethod<Method>(
  { id }: ServedModel["model"],
  method: Method | undefined,
  isFit: boolean,
  lack: string,
): Method {
  if (method !== undefined && isFit) return method;
  throw unsupported(`The model '${id}' ${lack}.`);
}

function unsupported(message: string): Fault {
  return new Fault("unsupported_value", { message, param: "model" });
}

/** The last events of an answer without output tokens. */
function closing(promptTokens: number): AnswerEvent[] {
  return [
    { kind: "finish", reason: "stop" },
    { kind: "usage", promptTokens, completionTokens: 0 },
  ];
}

/** One choice of an answer as far as it has come. */
interface ChoiceSoFar {
  reason: FinishReason | undefined;
  stop: string | undefined;
  readonly calls: Set<number>;
}

/**
 * Normalises a runtime's events, so that a stream and a whole answer come from the same events. It drops empty texts,
 * announces every tool call once with a unique id, and ends with exactly one finish for each choice. At most one usage
 * follows the finishes. Runtimes send finishes and usage in any order; their events are not trusted any further.
 */
export class AnswerAssembly {
  usage: Usage | undefined;
  finishReason: FinishReason | undefined;
  /**
   * Output tokens so far, counted in pieces: runtimes send one token at a time. The exact number comes with the usage.
   */
  outputTokens = 0;
  readonly #choices = new Map<number, ChoiceSoFar>();
  /** Ids of the tool calls so far. */
  readonly #ids = new Set<string>();
  readonly #tellsStop: boolean;
  /** 0 for an answer whose pieces are no tokens. */
  readonly #tokensPerPiece: number;

  constructor({ tellsStop = false, kind }: Partial<Pick<JobHead, "tellsStop" | "kind">> = {}) {
    this.#tellsStop = tellsStop;
    this.#tokensPerPiece = kind === "media" ? 0 : 1;
  }

  /** Returns the events that gateways get now. */
  push(events: readonly AnswerEvent[]): AnswerEvent[] {
    const regular: AnswerEvent[] = [];
    for (const event of events) {
      switch (event.kind) {
        case "text":
        case "reasoning":
          if (event.text === "") break;
          this.#choiceOf(event);
          if (this.usage === undefined) this.outputTokens += this.#tokensPerPiece;
          regular.push(event);
          break;
        case "tool-call-start": {
          const { calls } = this.#choiceOf(event);
          if (calls.has(event.index)) throw irregular(`tool call ${event.index} started twice`);
          calls.add(event.index);
          regular.push({ ...event, id: this.#ownId(event.id) });
          break;
        }
        case "tool-call-delta":
          if (!this.#choiceOf(event).calls.has(event.index))
            throw irregular(`tool call ${event.index} has arguments but no start`);
          if (event.arguments === "") break;
          if (this.usage === undefined) this.outputTokens += 1;
          regular.push(event);
          break;
        case "finish": {
          const choice = this.#choiceOf(event);
          choice.reason = event.reason;
          choice.stop = event.stop;
          break;
        }
        case "usage": {
          const { kind: _, ...usage } = event;
          this.usage = usage;
          this.outputTokens = usage.completionTokens;
          break;
        }
        default:
          regular.push(event);
      }
    }
    return regular;
  }

  /**
   * Returns the closing events; call it once, when the runtime has ended. Throws when a choice has no finish or when a
   * choice of several is missing: the answer is incomplete.
   */
  end(): AnswerEvent[] {
    const ends: AnswerEvent[] = [];
    const choices = Math.max(1, this.#choices.size);
    for (let choice = 0; choice < choices; choice += 1) {
      const { reason: given, stop, calls } = this.#choiceOf({ choice });
      if (given === undefined) throw brokenOff();
      // Some runtimes report `stop` after tool calls, or `tool_calls` without one.
      const said = given === "stop" || given === "tool_calls" ? (calls.size > 0 ? "tool_calls" : "stop") : given;
      this.finishReason ??= said;
      const tellsStop = choice === 0 && this.#tellsStop && said === "stop" && stop !== undefined;
      ends.push({ kind: "finish", ...(choice > 0 && { choice }), reason: said, ...(tellsStop && { stop }) });
    }
    if (this.usage !== undefined) ends.push({ kind: "usage", ...this.usage });
    return ends;
  }

  #choiceOf({ choice = 0 }: { readonly choice?: number | undefined }): ChoiceSoFar {
    const known = this.#choices.get(choice);
    if (known !== undefined) return known;
    const begun = { reason: undefined, stop: undefined, calls: new Set<number>() };
    this.#choices.set(choice, begun);
    return begun;
  }

  /** Returns an id that is unique across all choices: clients refer to a tool call by its id alone. */
  #ownId(given: string | undefined): string {
    const isNone = given === undefined || given === "" || this.#ids.has(given);
    const id = isNone ? `call_${randomBytes(12).toString("hex")}` : given;
    this.#ids.add(id);
    return id;
  }
}

function brokenOff(): Fault {
  const message = "The model's answer broke off before its end.";
  return new Fault("upstream_error", { message, internal: "the runtime ended its answer without a finish reason" });
}

function irregular(what: string): Fault {
  return new Fault("upstream_error", { message: "The model's answer could not be understood.", internal: what });
}
