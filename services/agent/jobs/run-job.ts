import { Fault } from "#shared/fault/fault.ts";
import { untilAborted } from "#shared/process/clock.ts";
import { abilityAt, decodeMediaBody } from "#shared/protocol/media-body.ts";
import { isAble } from "#shared/protocol/model.ts";
import type { ServedModel } from "../models/model-set.ts";
import { completeEach, embedInBatches, fanOut, textsAtOnce } from "../runtimes/fan-out.ts";
import { readAnyBody, unknownPart } from "../runtimes/json-bodies.ts";
import { refuseIncapable } from "../runtimes/refuse-unsupported.ts";
import type { EmitEvents } from "../runtimes/runtime.ts";
import { AnswerAssembly } from "./answer-records.ts";
import type { Job, Outcome } from "./job.ts";

type RunningJob = Pick<Job, "head" | "body" | "signal" | "width" | "moved" | "write">;

/**
 * Runs one job on its runtime and writes its answer events as records. Always returns one outcome:
 * when the signal aborts, at once and with the signal's reason, even if the adapter hangs.
 */
export async function runJob(job: RunningJob, served: ServedModel): Promise<Outcome> {
  const assembly = new AnswerAssembly(job.head);
  try {
    await untilAborted(job.signal, answer(job, served, assembly));
    return { outcome: "end", finishReason: assembly.finishReason, usage: assembly.usage };
  } catch (thrown) {
    const fault = Fault.from(job.signal.aborted ? job.signal.reason : thrown);
    return { outcome: "fault", fault, usage: assembly.usage };
  }
}

async function answer(job: RunningJob, served: ServedModel, assembly: AnswerAssembly): Promise<void> {
  const ask = await askRuntime(job, served);
  await ask(assembly.writingTo(job));
  assembly.endIn(job);
}

/** Reads a job's body by its kind, and returns the function that sends the request to its runtime. */
async function askRuntime(job: RunningJob, served: ServedModel): Promise<(emit: EmitEvents) => Promise<void>> {
  const { head, body = new Uint8Array(), signal, moved: onProgress } = job;
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
