import { type AnswerEvent, addRecords, type DataRecord } from "#shared/protocol/answer-events.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import { isLarge, readLargeBody, type JobBodies } from "../runtimes/bodies/large-json.ts";
import { readBody } from "../runtimes/bodies/read-body.ts";
import { completeEach, embedInBatches, fanOut, textsAtOnce } from "../runtimes/fan-out.ts";
import type { Route } from "../machine/offer.ts";
import { refuseIncapable } from "../runtimes/refuse-unsupported.ts";
import type { EmitEvents, Silence } from "../runtimes/runtime.ts";
import { AnswerAssembly } from "./assemble-answer.ts";
import type { Outcome } from "./past-jobs.ts";

const nothing = new Uint8Array();

interface RunningJob {
  readonly head: JobHead;
  /** The request body; dropped as soon as it is read. */
  body: Uint8Array;
  readonly route: Route;
  readonly signal: AbortSignal;
  readonly onProgress: (silence?: Silence) => void;
  /** Reports how many sequences the runtime works on at once for this job. */
  readonly onWidth: (width: number) => void;
  /** Writes a part of the answer. The runtime is not read on until the returned promise, if any, resolves. */
  readonly write: (records: readonly DataRecord[], outputTokens: number) => Promise<void> | undefined;
}

/**
 * Runs one job on its runtime and writes its answer events as records. Always returns one outcome:
 * when the signal aborts, at once and with the signal's reason, even if the adapter hangs.
 */
export async function runJob(job: RunningJob): Promise<Outcome> {
  const assembly = new AnswerAssembly();
  try {
    await untilAborted(job.signal, answer(job, assembly));
    return { outcome: "end", finishReason: assembly.finishReason, usage: assembly.usage };
  } catch (thrown) {
    const fault = Fault.from(job.signal.aborted ? job.signal.reason : thrown);
    return { outcome: "fault", fault, usage: assembly.usage };
  }
}

async function answer(job: RunningJob, assembly: AnswerAssembly): Promise<void> {
  const writing = new AnswerWriting(job, assembly);
  const asking = askRuntime(job);
  job.body = nothing;
  const ask = await asking;
  await ask((events) => writing.events(events));
  writing.end();
}

/** Normalises a runtime's answer events and writes them as records until the job is aborted. */
class AnswerWriting {
  readonly #job: RunningJob;
  readonly #assembly: AnswerAssembly;

  constructor(job: RunningJob, assembly: AnswerAssembly) {
    this.#job = job;
    this.#assembly = assembly;
  }

  events(events: readonly AnswerEvent[]): Promise<void> | undefined {
    return this.#job.signal.aborted ? undefined : this.#write(this.#assembly.push(events));
  }

  end(): void {
    if (!this.#job.signal.aborted) void this.#write(this.#assembly.end());
  }

  #write(events: readonly AnswerEvent[]): Promise<void> | undefined {
    const records: DataRecord[] = [];
    for (const event of events) addRecords(event, records);
    return this.#job.write(records, this.#assembly.outputTokens);
  }
}

/** Reads a job's body by its kind, and returns the function that sends the request to its runtime. */
async function askRuntime(job: RunningJob): Promise<(emit: EmitEvents) => Promise<void>> {
  const { head, body, route, signal, onProgress, onWidth } = job;
  const { runtime, ownId, model } = route;
  const { capabilities, context_window: contextWindow } = model;
  const { cacheSalt } = head;
  const run = { model: ownId, capabilities, contextWindow, cacheSalt, signal, onProgress };
  if (head.kind === "embed") {
    if (!capabilities.embedding || runtime.embed === undefined) throw doesNotEmbed(model.id);
    const embed = runtime.embed.bind(runtime);
    const texts = await bodyOf("embed", body);
    onWidth(Math.min(texts.input.length, textsAtOnce));
    return (emit) => embedInBatches(embed, { ...run, body: texts }, emit);
  }
  if (head.kind === "complete") {
    if (!capabilities.completion || runtime.complete === undefined) throw doesNotComplete(model.id);
    const complete = runtime.complete.bind(runtime);
    const completion = await bodyOf("complete", body);
    return (emit) => completeEach(complete, { ...run, body: completion }, emit);
  }
  const chat = await bodyOf("chat", body);
  refuseIncapable({ model: model.id, capabilities, body: chat });
  const chatRun = { ...run, body: chat };
  if (!runtime.answersSeveral) return (emit) => fanOut(runtime.chat.bind(runtime), chatRun, emit);
  onWidth(chat.n ?? 1);
  return (emit) => runtime.chat(chatRun, emit);
}

/** Reads a job's body; a large one beside the event loop, so that other answers go on. */
function bodyOf<Kind extends keyof JobBodies>(
  kind: Kind,
  bytes: Uint8Array,
): JobBodies[Kind] | Promise<JobBodies[Kind]> {
  return isLarge(bytes.byteLength) ? readLargeBody(kind, bytes) : (readBody(kind, bytes) as JobBodies[Kind]);
}

function doesNotEmbed(model: string): Fault {
  return new Fault("unsupported_value", { message: `The model '${model}' does not embed.`, param: "model" });
}

function doesNotComplete(model: string): Fault {
  return new Fault("unsupported_value", {
    message: `The model '${model}' does not continue texts; it may be asked at /v1/chat/completions.`,
    param: "model",
  });
}

/**
 * Waits for work until the signal aborts, then rejects with the signal's reason, even if the work hangs. The signal
 * must belong to this work alone, since the listener stays as long as the signal exists.
 */
export function untilAborted(signal: AbortSignal, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
    work.then(resolve, reject);
  });
}
