import { Fault } from "#shared/fault/fault.ts";
import { LineCutter } from "#shared/process/line-cutter.ts";
import { manageLineBytesMax } from "#shared/model/manage-line.ts";
import { decodeJson, encodeJson } from "#shared/protocol/frame-payload.ts";
import {
  manageProgress,
  manageShape,
  type ManageAction,
  type ManageBody,
  type ManageProgress,
} from "#shared/protocol/manage-job.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import { newToken } from "#shared/protocol/token.ts";
import type { Target } from "../dispatch/open-job.ts";
import type { OpenJobs } from "../dispatch/open-jobs.ts";

/** The longest time of an action on a machine's model: a large model over a slow line takes hours. */
export const manageTotalMs = 86_400_000;

export interface ManageWish {
  readonly action: ManageAction;
  /** The model's name as the operator wrote it. A model to be pulled has no other name yet. */
  readonly model: string;
  readonly onProgress: (progress: ManageProgress) => void;
  /** Cancels the work; the reason must be a Fault. */
  readonly signal: AbortSignal;
}

/** Runs a model action on one boot of a machine to its end. Throws the fault if the machine refuses it or fails. */
export async function manageModel(
  { action, model, onProgress, signal }: ManageWish,
  { jobs, target, timing }: { readonly jobs: OpenJobs; readonly target: Target; readonly timing: Timing },
): Promise<void> {
  const garbled = new AbortController();
  const lines = new LineCutter(manageLineBytesMax, unreadable);
  const outcome = await jobs.run({
    target,
    head: { id: newToken(), kind: "manage", shape: manageShape, model, remainingMs: manageTotalMs },
    body: encodeJson({ action } satisfies ManageBody),
    acceptWithinMs: timing.lostAfterMs,
    listener: {
      onData(bytes) {
        try {
          for (const line of lines.take(bytes)) onProgress(readProgress(line));
        } catch (error) {
          garbled.abort(Fault.from(error));
        }
      },
    },
    signal: AbortSignal.any([signal, garbled.signal]),
  });
  if (outcome.outcome !== "end") throw outcome.fault;
}

function readProgress(line: string): ManageProgress {
  const progress = decodeJson(manageProgress, Buffer.from(line));
  if (progress === undefined) throw unreadable();
  return progress;
}

function unreadable(): Fault {
  return new Fault("upstream_error", { message: "What the machine tells of its progress could not be understood." });
}
