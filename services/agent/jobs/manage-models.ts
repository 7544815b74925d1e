import { Fault } from "#shared/fault/fault.ts";
import type { ManageAction, ManageProgress } from "#shared/protocol/job-bodies.ts";
import { readBody } from "../runtimes/bodies/read-body.ts";
import type { Offer } from "../machine/offer.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { Outcome } from "./past-jobs.ts";
import { untilAborted } from "./run-job.ts";

interface ManageJob {
  /** The model id as the operator wrote it. */
  readonly model: string;
  readonly body: Uint8Array;
  readonly offer: Offer | undefined;
  /** The model actions that this machine's owner allows operators. */
  readonly allowed: ReadonlySet<ManageAction>;
  readonly signal: AbortSignal;
  readonly write: (progress: ManageProgress) => void;
}

/** Pulls, removes, loads or unloads a model, if the machine's owner allows the action and the runtime supports it. */
export async function manageModels(job: ManageJob): Promise<Outcome> {
  try {
    const { action } = readBody("manage", job.body);
    if (!job.allowed.has(action)) throw notAllowed(action);
    await untilAborted(job.signal, runAction(job, action));
    return { outcome: "end" };
  } catch (thrown) {
    return { outcome: "fault", fault: Fault.from(job.signal.aborted ? job.signal.reason : thrown) };
  }
}

async function runAction(job: ManageJob, action: ManageAction): Promise<void> {
  const { offer, model, signal, write } = job;
  if (offer === undefined) {
    throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
  }
  // Users of Ollama write its default tag `:latest`.
  const route = offer.route(model) ?? offer.route(model.replace(/:latest$/, ""));
  if (route === undefined && action !== "pull") {
    throw new Fault("model_not_found", { message: "This machine does not have that model.", param: "model" });
  }
  const able = (runtime: Runtime): boolean => runtime.manages?.[action] !== undefined;
  const runtime = route?.runtime ?? offer.runtimes.find(able);
  const manage = runtime?.manages?.[action];
  if (manage === undefined) {
    const names = route?.runtime.name ?? offer.names;
    throw new Fault("unsupported_value", {
      message: `The runtime of this machine (${names}) cannot ${action} a model.`,
      param: "action",
    });
  }
  const onProgress = (progress: ManageProgress): void => {
    if (!signal.aborted) write(progress);
  };
  await manage({ action, model: route?.ownId ?? model, signal, onProgress });
}

function notAllowed(action: ManageAction): Fault {
  return new Fault("insufficient_permissions", {
    message: `The owner of this machine does not allow to ${action} models there: TRUNKLINE_MANAGE on the machine has to name '${action}'.`,
  });
}
