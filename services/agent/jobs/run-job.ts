import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
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
import type { AgentJob, Outcome } from "./agent-job.ts";
import { AnswerAssembly } from "./answer-records.ts";
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
