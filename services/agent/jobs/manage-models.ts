import { Fault } from "#shared/fault/fault.ts";
import { type Clock, untilAborted } from "#shared/process/clock.ts";
import { jsonRecord } from "#shared/protocol/frame.ts";
import type { ManageAction, ManageProgress } from "#shared/protocol/job-bodies.ts";
import type { ModelPulls } from "../models/model-pulls.ts";
import type { ModelSet } from "../models/model-set.ts";
import type { RuntimeWatch } from "../models/watch-runtimes.ts";
import { readBody } from "../runtimes/json-bodies.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { Job, Outcome } from "./job.ts";

/** Answers a job with the models that the runtimes list now. */
export async function listModels(job: Job, runtime: RuntimeWatch): Promise<Outcome> {
  try {
    const catalogue = await runtime.ask();
    void job.outbox.write([jsonRecord(catalogue)], 0);
    return { outcome: "end" };
  } catch (thrown) {
    return { outcome: "fault", fault: Fault.from(thrown) };
  }
}

/** The models of a machine, and the pulls there. */
interface Managed {
  readonly offer: ModelSet | undefined;
  readonly pulls: ModelPulls | undefined;
  /** The actions that the machine's owner allows. */
  readonly allowed: ReadonlySet<ManageAction>;
  readonly clock: Pick<Clock, "now">;
}

/** Pulls, removes, loads or unloads a model, if the machine's owner allows the action and the runtime supports it. */
export async function manageModels(job: Job, machine: Managed): Promise<Outcome> {
  try {
    const { action } = readBody("manage", job.body ?? new Uint8Array());
    const needed = action === "stop" ? "pull" : action;
    if (!machine.allowed.has(needed)) throw notAllowed(needed);
    await untilAborted(job.signal, action === "stop" ? stopPull(job, machine) : runAction(job, action, machine));
    return { outcome: "end" };
  } catch (thrown) {
    return { outcome: "fault", fault: Fault.from(job.signal.aborted ? job.signal.reason : thrown) };
  }
}

async function stopPull({ head: { model = "" } }: Job, { pulls }: Managed): Promise<void> {
  if (pulls?.stop(model)) return;
  const message = `No pull of '${model}' is under way on this machine.`;
  throw new Fault("model_not_found", { message, param: "model" });
}

async function runAction(job: Job, action: ManageAction, { offer, pulls, clock }: Managed): Promise<void> {
  const { outbox, head, signal } = job;
  // The model's id as the operator wrote it.
  const { model = "" } = head;
  if (offer === undefined) {
    throw new Fault("runtime_offline", { message: "The model server on the GPU machine does not answer." });
  }
  // Users of Ollama write its default tag `:latest`.
  const served = offer.byId.get(model) ?? offer.byId.get(model.replace(/:latest$/, ""));
  if (served === undefined && action !== "pull") {
    throw new Fault("model_not_found", { message: "This machine does not have that model.", param: "model" });
  }
  const able = (runtime: Runtime): boolean => runtime.manages?.[action] !== undefined;
  const runtime = served?.runtime ?? offer.runtimes.find(able);
  const manage = runtime?.manages?.[action];
  if (manage === undefined) {
    const message = `The runtime of this machine (${runtime?.name ?? offer.names}) cannot ${action} a model.`;
    throw new Fault("unsupported_value", { message, param: "action" });
  }
  const onProgress = (progress: ManageProgress): void => {
    if (signal.aborted) return;
    job.progressAtMs = clock.now();
    void outbox.write([jsonRecord(progress)], 0);
  };
  const id = served?.ownId ?? model;
  if (action === "pull" && pulls !== undefined) await pulls.pull(id, manage, { signal, onProgress });
  else await manage({ action, model: id, signal, onProgress });
}

function notAllowed(action: ManageAction): Fault {
  return new Fault("insufficient_permissions", {
    message: `The owner of this machine does not allow to ${action} models there: TRUNKLINE_MANAGE on the machine has to name '${action}'.`,
  });
}
