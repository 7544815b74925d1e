import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import type { AnswerRenderer } from "#shared/answer/answer-renderer.ts";
import { rendererFor } from "#shared/answer/answer-shape.ts";
import { AnswerAssembly } from "#shared/answer/assemble-answer.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { JobHead } from "#shared/protocol/job.ts";
import { isLarge, readLargeBody, type JobBodies } from "../bodies/large-json.ts";
import { readBody } from "../bodies/read-body.ts";
import { embedInBatches, textsAtOnce } from "../runtimes/embed-in-batches.ts";
import { completeEach, fanOut } from "../runtimes/fan-out.ts";
import type { Route } from "../offer/offer.ts";
import { refuseIncapable } from "../runtimes/refuse-incapable.ts";
import type { EmitEvents, Silence } from "../runtimes/runtime.ts";
import type { Outcome } from "./past-jobs.ts";
import { untilAborted } from "./until-aborted.ts";

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
  /** Writes a piece of the answer. The runtime is not read on until the returned promise, if any, resolves. */
  readonly write: (bytes: Uint8Array, outputTokens: number) => Promise<void> | undefined;
}

/**
 * Runs one job on its runtime and writes its answer in the shape that the client requested. Always returns one outcome:
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

/** Normalises a runtime's answer events, renders them and writes them until the job is aborted. */
class AnswerWriting {
  readonly #job: RunningJob;
  readonly #assembly: AnswerAssembly;
  readonly #renderer: AnswerRenderer;

  constructor(job: RunningJob, assembly: AnswerAssembly) {
    this.#job = job;
    this.#assembly = assembly;
    this.#renderer = rendererOf(job.head);
  }

  events(events: readonly AnswerEvent[]): Promise<void> | undefined {
    return this.#job.signal.aborted ? undefined : this.#write(this.#renderer.push(this.#assembly.push(events)));
  }

  end(): void {
    if (this.#job.signal.aborted) return;
    void this.#write(this.#renderer.push(this.#assembly.end()));
    void this.#write(this.#renderer.end());
  }

  #write(bytes: Uint8Array): Promise<void> | undefined {
    return this.#job.write(bytes, this.#assembly.outputTokens);
  }
}

function rendererOf(head: JobHead): AnswerRenderer {
  const renderer = rendererFor(head.shape, {
    id: head.responseId ?? head.id,
    createdSeconds: head.createdSeconds ?? 0,
    model: head.model ?? "",
    includeUsage: head.includeUsage ?? false,
  });
  if (renderer === undefined) throw new Error(`a job was admitted in the shape ${head.shape}, which is not rendered`);
  return renderer;
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
