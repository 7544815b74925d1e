import { offeredModel, type Capabilities, type OfferedModel } from "#shared/model/model.ts";
import type { ModelSettings } from "./model-settings.ts";
import type { DescribedModel } from "../runtimes/runtime.ts";

/** Defaults where neither runtime nor operator reports a capability: a model that completes text, in a small window. */
const capabilitiesDefault: Capabilities = {
  completion: true,
  vision: false,
  embedding: false,
  tools: false,
  thinking: false,
};
const contextTokensDefault = 4_096;

/**
 * Returns a model as the machine offers it: the runtime's description, overridden by the operator's settings, with
 * defaults for the rest. Returns undefined for a model that does not fit the contract or has no capability.
 */
export function completeModel(facts: {
  readonly id: string;
  readonly described: DescribedModel;
  readonly settings: ModelSettings | undefined;
  readonly runtime: string;
  /** Returns when this machine first saw the model, for runtimes that report no creation time. */
  readonly firstSeenSeconds: () => number;
}): OfferedModel | undefined {
  const { id, described, settings = {}, runtime, firstSeenSeconds } = facts;
  const capabilities = completeCapabilities(described.capabilities, settings);
  if (!Object.values(capabilities).includes(true)) return undefined;
  const sizeMb = described.sizeBytes === undefined ? 0 : Math.round(described.sizeBytes / 1_000_000);
  const completed = offeredModel.safeParse({
    id,
    object: "model",
    created: described.createdSeconds ?? firstSeenSeconds(),
    owned_by: settings.owned_by ?? described.ownedBy,
    capabilities,
    context_window: settings.context_window ?? (described.contextTokens || contextTokensDefault),
    size_mb: settings.size_mb ?? sizeMb,
    runtime_profile: described.onAppleMlx ? "apple-mlx" : "auto",
    ...(described.onAppleMlx && { apple_mlx: true }),
    runtime,
    ...(described.loaded !== undefined && { loaded: described.loaded }),
  });
  return completed.success ? completed.data : undefined;
}

/** Completes the capabilities. A model that is known to embed is not assumed to chat as well. */
function completeCapabilities(described: Partial<Capabilities>, settings: ModelSettings): Capabilities {
  const given = { ...withoutUndefined(described), ...withoutUndefined(settings.capabilities ?? {}) };
  return { ...capabilitiesDefault, completion: given.embedding !== true, ...given };
}

function withoutUndefined(partial: {
  readonly [Key in keyof Capabilities]?: boolean | undefined;
}): Partial<Capabilities> {
  return Object.fromEntries(Object.entries(partial).filter(([, value]) => value !== undefined));
}
