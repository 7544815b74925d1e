import { AnswerAssembly } from "#shared/answer/assemble-answer.ts";
import type { AnswerRenderer } from "#shared/answer/answer-renderer.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { ChatBody } from "#shared/protocol/chat-body.ts";
import type { FinishReason, Usage } from "#shared/answer/answer-event.ts";
import type { Runtime } from "../runtimes/runtime.ts";

interface ChatJob {
  readonly runtime: Runtime;
  readonly model: string;
  readonly body: ChatBody;
  readonly renderer: AnswerRenderer;
  readonly signal: AbortSignal;
  readonly onProgress: () => void;
  readonly write: (bytes: Uint8Array, outputTokens: number) => void;
}

export type ChatOutcome =
  | { readonly outcome: "end"; readonly finishReason: FinishReason | undefined; readonly usage: Usage | undefined }
  | { readonly outcome: "fault"; readonly fault: Fault; readonly usage: Usage | undefined };

/**
 * Runs one chat on the runtime and writes its answer in the shape that the job asked for. Always comes to one
 * outcome: when the signal aborts, at once and with the signal's reason, even if the runtime's adapter hangs.
 */
export async function runChat(job: ChatJob): Promise<ChatOutcome> {
  const assembly = new AnswerAssembly();
  try {
    await untilAborted(job.signal, answer(job, assembly));
    return { outcome: "end", finishReason: assembly.finishReason, usage: assembly.usage };
  } catch (thrown) {
    return {
      outcome: "fault",
      fault: Fault.from(job.signal.aborted ? job.signal.reason : thrown),
      usage: assembly.usage,
    };
  }
}

async function answer(job: ChatJob, assembly: AnswerAssembly): Promise<void> {
  const { runtime, model, body, signal, onProgress, renderer, write } = job;
  for await (const events of runtime.chat({ model, body, signal, onProgress })) {
    if (signal.aborted) return;
    onProgress();
    write(renderer.push(assembly.push(events)), assembly.outputTokens);
  }
  if (signal.aborted) return;
  write(renderer.push(assembly.end()), assembly.outputTokens);
  write(renderer.end(), assembly.outputTokens);
}

function untilAborted(signal: AbortSignal, work: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}
