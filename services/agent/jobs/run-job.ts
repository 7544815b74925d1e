import type { AnswerEvent, FinishReason, Usage } from "#shared/protocol/answer-events.ts";
import { addRecords, type DataRecord, jsonRecord } from "#shared/protocol/frame.ts";
import { Fault } from "#shared/fault/fault.ts";
import { abilityAt, decodeMediaBody } from "#shared/protocol/media-body.ts";
import { readAnyBody, readBody, unknownPart } from "../runtimes/json-bodies.ts";
import { completeEach, embedInBatches, fanOut, textsAtOnce } from "../runtimes/fan-out.ts";
import { isAble } from "#shared/protocol/model.ts";
import type { ModelPulls } from "../models/model-pulls.ts";
import type { ServedModel, ModelSet } from "../models/model-set.ts";
import { refuseIncapable } from "../runtimes/refuse-unsupported.ts";
import type { EmitEvents, Silence, Runtime } from "../runtimes/runtime.ts";
import { randomBytes } from "node:crypto";
import type { AgentJob, Outcome } from "./agent-job.ts";
import type { ManageAction, ManageProgress } from "#shared/protocol/job-bodies.ts";

type RunningJob = Pick<AgentJob, "head" | "body" | "signal" | "width" | "moved" | "write">;

/**
 * Runs one job on its runtime and writes its answer events as records. Always returns one outcome:
 * when the signal aborts, at once and with the signal's reason, even if the adapter hangs.
 */
export async function runJob(job: RunningJob, served: ServedModel): Promise<Outcome> {
  const assembly = new AnswerAssembly({
    tellsStop: job.head.tellsStop === true,
    countsPieces: job.head.kind !== "media",
  });
  try {
    await untilAborted(job.signal, answer(job, served, assembly));
    return { outcome: "end", finishReason: assembly.finishReason, usage: assembly.usage };
  } catch (thrown) {
    const fault = Fault.from(job.signal.aborted ? job.signal.reason : thrown);
    return { outcome: "fault", fault, usage: assembly.usage };
  }
}

async function answer(job: RunningJob, served: ServedModel, assembly: AnswerAssembly): Promise<void> {
  const write = (events: readonly AnswerEvent[]): Promise<void> | undefined => {
    const records: DataRecord[] = [];
    for (const event of events) addRecords(event, records);
    return job.write(records, assembly.outputTokens);
  };
  const ask = await askRuntime(job, served);
  await ask((events) => (job.signal.aborted ? undefined : write(assembly.push(events))));
  if (!job.signal.aborted) void write(assembly.end());
}

/** Reads a job's body by its kind, and returns the function that sends the request to its runtime. */
async function askRuntime(job: RunningJob, served: ServedModel): Promise<(emit: EmitEvents) => Promise<void>> {
  const { head, body = new Uint8Array(), signal } = job;
  const onProgress = (silence?: Silence): void => job.moved(silence);
  const { runtime, ownId, model } = served;
  const { capabilities, context_window: contextWindow } = model;
  const { cacheSalt } = head;
  const run = { model: ownId, capabilities, contextWindow, cacheSalt, signal, onProgress };
  /** Returns a method of the runtime. Throws if the runtime or the model lacks it. */
  const requireMethod = <Method>(method: Method | undefined, isFit: boolean, lack: string): Method => {
    if (method !== undefined && isFit) return method;
    throw unsupported(`The model '${model.id}' ${lack}.`);
  };
  if (head.kind === "embed") {
    const embed = requireMethod(runtime.embed?.bind(runtime), capabilities.embedding, "does not embed");
    const texts = await readAnyBody("embed", body);
    job.width = Math.min(texts.input.length, textsAtOnce);
    return (emit) => embedInBatches(embed, { ...run, body: texts }, emit);
  }
  if (head.kind === "rerank") {
    const rerank = requireMethod(runtime.rerank?.bind(runtime), isAble(model, "rerank"), "does not rerank");
    const query = await readAnyBody("rerank", body);
    return async (emit) => {
      onProgress("prefill");
      const { scores, promptTokens } = await rerank({ ...run, body: query });
      const usage = { kind: "usage", promptTokens, completionTokens: 0 } as const;
      await emit([{ kind: "scores", scores }, { kind: "finish", reason: "stop" }, usage]);
    };
  }
  if (head.kind === "media") {
    const media = decodeMediaBody(body);
    if (media === undefined) throw unknownPart(undefined, "the body of a media job has another form");
    const isFit = isAble(model, abilityAt[media.path]);
    const ask = requireMethod(runtime.media?.bind(runtime), isFit, `does not take '${media.path}'`);
    return (emit) => ask({ ...run, body: media }, emit);
  }
  if (head.kind === "complete") {
    const lack = "does not continue texts; it may be asked at /v1/chat/completions";
    const complete = requireMethod(runtime.complete?.bind(runtime), capabilities.completion, lack);
    const completion = await readAnyBody("complete", body);
    return (emit) => completeEach(complete, { ...run, body: completion }, emit);
  }
  const chat = await readAnyBody("chat", body);
  refuseIncapable({ model: model.id, capabilities, body: chat });
  const chatRun = { ...run, body: chat };
  if (head.kind === "count") {
    if (runtime.count === undefined) throw unsupported(`The runtime of the model '${model.id}' does not count tokens.`);
    const count = runtime.count.bind(runtime);
    return async (emit) => {
      const promptTokens = await count(chatRun);
      await emit([
        { kind: "finish", reason: "stop" },
        { kind: "usage", promptTokens, completionTokens: 0 },
      ]);
    };
  }
  if (chat.n !== undefined && !runtime.answersSeveral) {
    return (emit) => fanOut(runtime.chat.bind(runtime), chatRun, emit);
  }
  job.width = chat.n ?? 1;
  return (emit) => runtime.chat(chatRun, emit);
}

function unsupported(message: string): Fault {
  return new Fault("unsupported_value", { message, param: "model" });
}

/**
 * Waits for work until the signal aborts, then rejects with the signal's reason, even if the work hangs. The signal
 * must belong to this work alone, since the listener stays as long as the signal exists.
 */
function untilAborted(signal: AbortSignal, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
    work.then(resolve, reject);
  });
}

/**
 * Normalises a runtime's events, so that a stream and a whole answer come from the same events. It drops empty texts,
 * announces every tool call once with a unique id, and ends with exactly one finish for each choice. At most one usage
 * follows the finishes. Runtimes send finishes and usage in any order; their events are not trusted any further.
 */
export class AnswerAssembly {
  readonly #choices = new Map<number, ChoiceSoFar>();
  /** Ids of the tool calls so far. */
  readonly #ids = new Set<string>();
  #usage: Extract<AnswerEvent, { kind: "usage" }> | undefined;
  #outputTokens = 0;
  readonly #tellsStop: boolean;
  /** False for an answer whose pieces are no tokens. */
  readonly #countsPieces: boolean;

  constructor({ tellsStop = false, countsPieces = true }: { tellsStop?: boolean; countsPieces?: boolean } = {}) {
    this.#tellsStop = tellsStop;
    this.#countsPieces = countsPieces;
  }

  /**
   * Output tokens so far, counted in pieces: runtimes send one token at a time. The exact number comes with the usage.
   */
  get outputTokens(): number {
    return this.#usage?.completionTokens ?? this.#outputTokens;
  }

  get usage(): Usage | undefined {
    if (this.#usage === undefined) return undefined;
    const { kind: _, ...usage } = this.#usage;
    return usage;
  }

  get finishReason(): FinishReason | undefined {
    return this.#choices.get(0)?.finishReason;
  }

  push(events: readonly AnswerEvent[]): AnswerEvent[] {
    const regular: AnswerEvent[] = [];
    for (const event of events) {
      const kept = this.#take(event);
      if (kept !== undefined) regular.push(kept);
    }
    return regular;
  }

  /**
   * Returns the closing events; call it once, when the runtime has ended. Throws when a choice has no finish or when a
   * choice of several is missing: the answer is incomplete.
   */
  end(): AnswerEvent[] {
    if (this.#choices.size === 0) throw brokenOff();
    const ends: AnswerEvent[] = [...this.#choices]
      .toSorted(([a], [b]) => a - b)
      .map(([choice, { finishReason: reason, stop }], place) => {
        if (reason === undefined || choice !== place) throw brokenOff();
        if (choice > 0) return { kind: "finish", choice, reason };
        const tellsStop = this.#tellsStop && reason === "stop" && stop !== undefined;
        return { kind: "finish", reason, ...(tellsStop && { stop }) };
      });
    if (this.#usage !== undefined) ends.push(this.#usage);
    return ends;
  }

  #take(event: AnswerEvent): AnswerEvent | undefined {
    switch (event.kind) {
      case "text":
      case "reasoning":
        if (event.text === "") return undefined;
        this.#choiceOf(event);
        if (this.#countsPieces) this.#outputTokens += 1;
        return event;
      case "tool-call-start":
        this.#choiceOf(event).start(event.index);
        return { ...event, id: this.#ownId(event.id) };
      case "tool-call-delta":
        this.#choiceOf(event).assertCall(event.index);
        if (event.arguments === "") return undefined;
        this.#outputTokens += 1;
        return event;
      case "finish": {
        const choice = this.#choiceOf(event);
        choice.reason = event.reason;
        choice.stop = event.stop;
        return undefined;
      }
      case "embedding":
      case "scores":
      case "audio":
        return event;
      case "usage":
        this.#usage = event;
        return undefined;
    }
  }

  #choiceOf({ choice = 0 }: { readonly choice?: number | undefined }): ChoiceSoFar {
    return this.#choices.getOrInsertComputed(choice, () => new ChoiceSoFar());
  }

  /** Returns an id that is unique across all choices: clients refer to a tool call by its id alone. */
  #ownId(given: string | undefined): string {
    const isNone = given === undefined || given === "" || this.#ids.has(given);
    const id = isNone ? `call_${randomBytes(12).toString("hex")}` : given;
    this.#ids.add(id);
    return id;
  }
}

class ChoiceSoFar {
  reason: FinishReason | undefined;
  stop: string | undefined;
  readonly #calls = new Set<number>();

  /**
   * Corrects the finish reason: `tool_calls` instead of `stop` with tool calls, and `stop` instead of `tool_calls`
   * without.
   */
  get finishReason(): FinishReason | undefined {
    const called = this.#calls.size > 0;
    if (this.reason === "stop" && called) return "tool_calls";
    return this.reason === "tool_calls" && !called ? "stop" : this.reason;
  }

  start(call: number): void {
    if (this.#calls.has(call)) throw irregular(`tool call ${call} started twice`);
    this.#calls.add(call);
  }

  assertCall(call: number): void {
    if (!this.#calls.has(call)) throw irregular(`tool call ${call} has arguments but no start`);
  }
}

function brokenOff(): Fault {
  return new Fault("upstream_error", {
    message: "The model's answer broke off before its end.",
    internal: "the runtime ended its answer without a finish reason",
  });
}

function irregular(what: string): Fault {
  return new Fault("upstream_error", { message: "The model's answer could not be understood.", internal: what });
}

/** Pulls, removes, loads or unloads a model, if the machine's owner allows the action and the runtime supports it. */
export async function manageModels(
  job: AgentJob,
  { allowed, ...machine }: Managed & { readonly allowed: ReadonlySet<ManageAction> },
): Promise<Outcome> {
  try {
    const { action } = readBody("manage", job.body ?? new Uint8Array());
    const needed = action === "stop" ? "pull" : action;
    if (!allowed.has(needed)) throw notAllowed(needed);
    await untilAborted(job.signal, action === "stop" ? stopPull(job, machine) : runAction(job, action, machine));
    return { outcome: "end" };
  } catch (thrown) {
    return { outcome: "fault", fault: Fault.from(job.signal.aborted ? job.signal.reason : thrown) };
  }
}

/** The models of a machine, and the pulls there. */
interface Managed {
  readonly offer: ModelSet | undefined;
  readonly pulls: ModelPulls | undefined;
}

async function stopPull({ head: { model = "" } }: AgentJob, { pulls }: Managed): Promise<void> {
  if (pulls?.stop(model)) return;
  throw new Fault("model_not_found", {
    message: `No pull of '${model}' is under way on this machine.`,
    param: "model",
  });
}

async function runAction(job: AgentJob, action: ManageAction, { offer, pulls }: Managed): Promise<void> {
  const { frames, head, signal } = job;
  // The model's id as the operator wrote it.
  const { model = "" } = head;
  if (offer === undefined) {
    throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
  }
  // Users of Ollama write its default tag `:latest`.
  const served = offer.find(model) ?? offer.find(model.replace(/:latest$/, ""));
  if (served === undefined && action !== "pull") {
    throw new Fault("model_not_found", { message: "This machine does not have that model.", param: "model" });
  }
  const able = (runtime: Runtime): boolean => runtime.manages?.[action] !== undefined;
  const runtime = served?.runtime ?? offer.runtimes.find(able);
  const manage = runtime?.manages?.[action];
  if (manage === undefined) {
    const names = served?.runtime.name ?? offer.names;
    throw new Fault("unsupported_value", {
      message: `The runtime of this machine (${names}) cannot ${action} a model.`,
      param: "action",
    });
  }
  const onProgress = (progress: ManageProgress): void => {
    if (signal.aborted) return;
    job.moved();
    void frames.write([jsonRecord(progress)], 0);
  };
  const id = served?.ownId ?? model;
  if (action === "pull" && pulls !== undefined && runtime !== undefined) {
    await pulls.pull(id, runtime, { signal, onProgress });
  } else await manage({ action, model: id, signal, onProgress });
}

function notAllowed(action: ManageAction): Fault {
  return new Fault("insufficient_permissions", {
    message: `The owner of this machine does not allow to ${action} models there: TRUNKLINE_MANAGE on the machine has to name '${action}'.`,
  });
}
