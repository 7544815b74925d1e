import { Fault } from "#shared/fault/fault.ts";
import { loadsPerMinuteDefault } from "#shared/admin/key-terms.ts";
import type { KeyLimits } from "#shared/records/key-record.ts";
import { noSeat, type Limits } from "./limits.ts";

/** The load that a request would cause: other models make room for its own. */
export interface CausedLoad {
  readonly model: string;
  /** True if the agent of the machine decides what is loaded there. */
  readonly isPlaced: boolean;
}

/** The longest wait that a refusal tells a client. */
const retryAfterSecondsMax = 60;

/**
 * Throws the fault of a request whose key may not cause a load now. Loads are counted like requests, under a name of their
 * own. Where runtimes load by themselves, only a limit that was set for the key counts.
 */
export async function assertMayLoad(
  { id, limits: { loadsPerMinute } = {} }: { readonly id: string; readonly limits?: KeyLimits | undefined },
  { model, isPlaced }: CausedLoad,
  limits: Limits,
): Promise<void> {
  if (loadsPerMinute === undefined && !isPlaced) return;
  const perMinute = loadsPerMinute ?? loadsPerMinuteDefault;
  if (perMinute === 0) {
    throw new Fault("loads_not_allowed", {
      message: `The model '${model}' is in no machine's memory, and this key may not have models loaded (--no-loads). Ask for one that is loaded.`,
      param: "model",
    });
  }
  const demand = { keyId: `${id}.loads`, limits: { requestsPerMinute: perMinute }, seat: noSeat, tokens: 0 };
  const admission = await limits.admit(demand);
  if (admission.outcome === "admitted") return;
  const waitSeconds = Math.max(1, Math.ceil(admission.waitMs / 1_000));
  const share = admission.limitStatus.requests?.limit ?? perMinute;
  throw new Fault("rate_limit_loads", {
    message: `This key may have ${share === 1 ? "1 model" : `${share} models`} a minute loaded in place of others, and has. Try again in ${waitSeconds}s, or ask for a model that is loaded.`,
    retryAfterSeconds: Math.min(waitSeconds, retryAfterSecondsMax),
    param: "model",
  });
}
